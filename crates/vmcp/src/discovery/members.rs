//! The members of a group, as backends.

use std::{collections::BTreeMap, sync::Arc};

use kube::{
    Api, Resource, ResourceExt,
    api::{ApiResource, DynamicObject, ListParams},
    runtime::reflector::Store,
};
use serde::de::DeserializeOwned;
use skep_api::{
    kinds::{MCPExternalAuthConfig, MCPRemoteProxy, MCPServer, MCPServerEntry, MCPServerEntryPhase},
    refs::ExternalAuthConfigRef,
    strategy,
    vmcp::{Backend, BackendAuthStrategy, BackendTransport, OutgoingAuth},
    workload::RemoteTransport,
};

use super::{Kept, references::References};
use crate::{
    Cluster,
    backend::{Authorities, Blueprint},
};

/// The objects that members are computed from.
pub(super) struct Objects<'a> {
    pub(super) servers: &'a Kept,
    pub(super) proxies: &'a Kept,
    pub(super) entries: &'a Kept,
    pub(super) auths: &'a Kept,
    /// The providers of the authorization server, if there is one.
    pub(super) providers: Option<&'a [String]>,
}

/// A member, before what it refers to has been read.
struct Member {
    name: String,
    url: String,
    transport: BackendTransport,
    auth: Option<ExternalAuthConfigRef>,
    entry: Option<MCPServerEntry>,
}

impl Objects<'_> {
    /// The backends of a group, and why members cannot be backends.
    pub(super) async fn members(
        &self,
        group: &str,
        outgoing: Option<&OutgoingAuth>,
        references: &References<'_>,
    ) -> Vec<Result<Blueprint, String>> {
        let mut blueprints = Vec::new();
        let kinds = [self.servers, self.proxies, self.entries].map(Store::state);
        for member in members(&kinds, group) {
            let name = member.name.clone();
            let blueprint = self.blueprint(member, outgoing, references).await;
            blueprints.push(blueprint.map_err(|error| format!("{name}: {error}")));
        }
        blueprints
    }

    async fn blueprint(
        &self,
        member: Member,
        outgoing: Option<&OutgoingAuth>,
        references: &References<'_>,
    ) -> Result<Blueprint, String> {
        let own = match &member.auth {
            Some(reference) => Some(self.strategy(&reference.name, references).await?),
            None => outgoing.and_then(|outgoing| outgoing.strategy(&member.name)).cloned(),
        };
        let mut headers = BTreeMap::new();
        let mut authorities = Authorities::System;
        if let Some(entry) = &member.entry {
            if let Some(forward) = &entry.spec.header_forward {
                headers = forward.add_plaintext_headers.clone();
                for header in &forward.add_headers_from_secret {
                    headers.insert(
                        header.header_name.clone(),
                        references.secret(&header.value_secret_ref).await?,
                    );
                }
            }
            if let Some(selector) =
                entry.spec.ca_bundle_ref.as_ref().and_then(|bundle| bundle.config_map_ref.as_ref())
            {
                let key = selector.key.as_str();
                let key = if key.is_empty() { "ca.crt" } else { key };
                let name = selector.name.as_deref().unwrap_or_default();
                authorities = Authorities::Pem(references.config(name, key).await?);
            }
        }
        Ok(Blueprint {
            name: Arc::from(member.name),
            url: member.url,
            transport: member.transport,
            strategy: own,
            auth_config: member.auth.map(|reference| reference.name),
            headers,
            authorities,
        })
    }

    /// How an MCPExternalAuthConfig has the virtual server authenticate, with the secrets that it refers to.
    async fn strategy(&self, name: &str, references: &References<'_>) -> Result<BackendAuthStrategy, String> {
        let config =
            parsed::<MCPExternalAuthConfig>(&self.auths.state()).find(|config| config.name_any() == name);
        let Some(config) = config else { return Err(format!("MCPExternalAuthConfig {name} does not exist")) };
        let described = strategy::strategy(name, &config.spec, self.providers);
        let described =
            described.map_err(|error| format!("MCPExternalAuthConfig {name}: {}", error.error()))?;
        let mut secrets = BTreeMap::new();
        for (variable, secret) in strategy::variables(name, &config.spec) {
            secrets.insert(variable, references.secret(secret).await?);
        }
        Ok(described.with_secrets(|name| secrets.get(name).cloned()))
    }
}

/// The members of a group that have an address now, as a configuration file lists them.
pub async fn backends_of_group(cluster: &Cluster, group: &str) -> kube::Result<Vec<Backend>> {
    let kinds = [
        objects::<MCPServer>(cluster).await?,
        objects::<MCPRemoteProxy>(cluster).await?,
        objects::<MCPServerEntry>(cluster).await?,
    ];
    let mut members = members(&kinds, group);
    members.dedup_by(|one, other| one.name == other.name);
    let backend =
        |Member { name, url, transport, .. }| Backend { name, url, transport, ..Backend::default() };
    Ok(members.into_iter().map(backend).collect())
}

async fn objects<K: Resource<DynamicType = ()>>(cluster: &Cluster) -> kube::Result<Vec<Arc<DynamicObject>>> {
    let resource = ApiResource::erase::<K>(&());
    let api: Api<DynamicObject> = Api::namespaced_with(cluster.client.clone(), &cluster.namespace, &resource);
    Ok(api.list(&ListParams::default()).await?.into_iter().map(Arc::new).collect())
}

/// The members among the servers, proxies and entries of a namespace, by their names.
fn members([servers, proxies, entries]: &[Vec<Arc<DynamicObject>>; 3], group: &str) -> Vec<Member> {
    let mut found = Vec::new();
    found.extend(parsed::<MCPServer>(servers).filter_map(|server| server_member(&server, group)));
    found.extend(parsed::<MCPRemoteProxy>(proxies).filter_map(|proxy| proxy_member(&proxy, group)));
    found.extend(parsed::<MCPServerEntry>(entries).filter_map(|entry| entry_member(entry, group)));
    found.sort_by(|one: &Member, other| one.name.cmp(&other.name));
    found
}

/// The objects that can be parsed.
fn parsed<K: Resource + DeserializeOwned>(objects: &[Arc<DynamicObject>]) -> impl Iterator<Item = K> {
    objects.iter().filter_map(|object| DynamicObject::clone(object).try_parse().ok())
}

fn server_member(server: &MCPServer, group: &str) -> Option<Member> {
    let spec = &server.spec;
    let is_sse = spec.serves_sse();
    let url = server.status.as_ref()?.url.clone();
    member(
        server,
        spec.group_ref.as_ref().map(|reference| &*reference.name),
        group,
        url?,
        is_sse,
        &spec.external_auth_config_ref,
    )
}

fn proxy_member(proxy: &MCPRemoteProxy, group: &str) -> Option<Member> {
    let spec = &proxy.spec;
    let url = proxy.status.as_ref()?.url.clone();
    let is_sse = spec.transport() == RemoteTransport::Sse;
    member(
        proxy,
        spec.group_ref.as_ref().map(|reference| &*reference.name),
        group,
        url?,
        is_sse,
        &spec.external_auth_config_ref,
    )
}

/// An entry is used once all that it refers to exists.
fn entry_member(entry: MCPServerEntry, group: &str) -> Option<Member> {
    let phase = entry.status.as_ref().and_then(|status| status.phase);
    if phase != Some(MCPServerEntryPhase::Valid) {
        return None;
    }
    let spec = &entry.spec;
    let is_sse = spec.transport == RemoteTransport::Sse;
    let found = member(
        &entry,
        Some(&spec.group_ref.name),
        group,
        spec.remote_url.clone(),
        is_sse,
        &spec.external_auth_config_ref,
    )?;
    Some(Member { entry: Some(entry), ..found })
}

fn member(
    object: &impl ResourceExt,
    of: Option<&str>,
    group: &str,
    url: String,
    is_sse: bool,
    auth: &Option<ExternalAuthConfigRef>,
) -> Option<Member> {
    let is_member = of == Some(group) && object.meta().deletion_timestamp.is_none() && !url.is_empty();
    is_member.then(|| Member {
        name: object.name_any(),
        url,
        transport: if is_sse { BackendTransport::Sse } else { BackendTransport::StreamableHttp },
        auth: auth.clone(),
        entry: None,
    })
}
