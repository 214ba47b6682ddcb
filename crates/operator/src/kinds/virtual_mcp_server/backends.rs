//! The members of a group, as backends of a virtual MCP server.

use std::{collections::BTreeMap, sync::Arc};

use skep_api::{
    kinds::{MCPGroup, MCPRemoteProxy, MCPServer, MCPServerEntry, MCPServerEntryPhase},
    vmcp::{Backend, BackendTransport, BackendType},
};
use skep_world::Reader;

use super::{backend_auth::BackendAuths, inputs::Inputs};
use crate::{
    config_refs,
    kinds::{mcp_remote_proxy, mcp_server},
    resources::{Custom, reference_key},
};

/// A member of a group.
pub(super) enum Member {
    Server(Arc<MCPServer>),
    Proxy(Arc<MCPRemoteProxy>),
    Entry(Arc<MCPServerEntry>),
}

/// The members of a group. One that cannot be parsed is left out.
pub(super) fn members(reader: &mut Reader, group: &str) -> Vec<Member> {
    let key = reference_key::<MCPGroup>(group);
    let mut all = Vec::new();
    macro_rules! of {
        ($kind:ty, $member:path) => {
            let found = reader.by_index::<Custom<$kind>>(&key).into_iter();
            all.extend(found.filter_map(|(_, entry)| entry.cached.object.ok()).map($member));
        };
    }
    of!(MCPServer, Member::Server);
    of!(MCPRemoteProxy, Member::Proxy);
    of!(MCPServerEntry, Member::Entry);
    all
}

impl Member {
    pub(super) fn name(&self) -> &str {
        let metadata = match self {
            Self::Server(server) => &server.metadata,
            Self::Proxy(proxy) => &proxy.metadata,
            Self::Entry(entry) => &entry.metadata,
        };
        metadata.name.as_deref().unwrap_or_default()
    }

    /// The MCPExternalAuthConfig for authenticating to it.
    pub(super) fn external_auth(&self) -> Option<&str> {
        let reference = match self {
            Self::Server(server) => &server.spec.external_auth_config_ref,
            Self::Proxy(proxy) => &proxy.spec.external_auth_config_ref,
            Self::Entry(entry) => &entry.spec.external_auth_config_ref,
        };
        reference.as_ref().map(|reference| reference.name.as_str())
    }

    /// The entry, with its name, if it is one.
    pub(super) fn entry(&self) -> Option<(&str, &MCPServerEntry)> {
        match self {
            Self::Entry(entry) => Some((self.name(), entry)),
            Self::Server(_) | Self::Proxy(_) => None,
        }
    }

    /// Whether requests can be forwarded to it. An entry that is known to be invalid gets none.
    fn is_usable(&self) -> bool {
        match self {
            Self::Server(_) | Self::Proxy(_) => true,
            Self::Entry(entry) => {
                let phase = entry.status.as_ref().and_then(|status| status.phase);
                phase != Some(MCPServerEntryPhase::Failed)
            }
        }
    }

    /// Its entry in the configuration of a server that does not discover its backends. It has nothing that changes at run
    /// time, such as the phase: each change would roll the pods.
    fn backend(&self, inputs: &Inputs) -> Backend {
        let (url, transport, type_, remote) = match self {
            Self::Server(server) => (
                mcp_server::address::url(server),
                mcp_server::address::transport(&server.spec),
                "mcp_server",
                None,
            ),
            Self::Proxy(proxy) => {
                let url = mcp_remote_proxy::address::url(proxy);
                (url, proxy.spec.transport().as_str(), "remote_proxy", Some(&proxy.spec.remote_url))
            }
            Self::Entry(entry) => {
                let (url, transport) = (entry.spec.remote_url.clone(), entry.spec.transport.as_str());
                (url, transport, "server_entry", Some(&entry.spec.remote_url))
            }
        };
        let mut metadata = BTreeMap::from(
            [
                ("group", inputs.group.name.as_str()),
                ("namespace", &inputs.identity.namespace),
                ("tool_type", "mcp"),
                ("workload_type", type_),
            ]
            .map(|(key, value)| (key.to_owned(), value.to_owned())),
        );
        metadata.extend(remote.map(|url| ("remote_url".to_owned(), url.clone())));
        let entry = self.entry();
        Backend {
            name: self.name().into(),
            url,
            transport: match transport == BackendTransport::Sse.as_str() {
                true => BackendTransport::Sse,
                false => BackendTransport::StreamableHttp,
            },
            type_: entry.map(|_| BackendType::Entry),
            ca_bundle_path: entry.and_then(|(name, entry)| config_refs::entry::ca_path(name, &entry.spec)),
            metadata,
        }
    }
}

/// The backends of a server that does not discover them, sorted by name: the members that can be used, and that it can
/// authenticate to.
pub(super) fn backends(inputs: &Inputs, auths: &BackendAuths) -> Vec<Backend> {
    let members = inputs.members.iter().filter(|member| member.is_usable());
    let members = members.filter(|member| auths.is_usable(member.name()));
    let mut all: Vec<Backend> = members.map(|member| member.backend(inputs)).collect();
    all.sort_by(|a, b| a.name.cmp(&b.name));
    all
}
