//! Everything that an MCPRemoteProxy's children and status depend on, looked up once.

use std::sync::Arc;

use skep_api::kinds::{MCPRemoteProxy, MCPRemoteProxySpec};
use skep_world::{ReadError, Reader};

use super::{address::service, findings::findings};
use crate::{
    proxied::{Findings, Proxied},
    settings::Settings,
    watched::RemoteProxies,
};

/// The label `app` of the proxies of MCPRemoteProxies.
const APP: &str = "mcpremoteproxy";

/// The field that asks for Secrets with the values of headers.
pub(super) const HEADERS: &str = "headerForward.addHeadersFromSecret";

/// What was found.
pub struct Inputs {
    pub(super) object: Arc<MCPRemoteProxy>,
    pub(super) proxied: Proxied,
    /// What all of this amounts to.
    pub(super) findings: Findings,
}

impl Inputs {
    pub(super) async fn resolve(
        object: Arc<MCPRemoteProxy>,
        settings: Arc<Settings>,
        reader: &mut Reader,
    ) -> Result<Self, ReadError> {
        let headers = object.spec.header_forward.iter().flat_map(|headers| &headers.add_headers_from_secret);
        let secrets = headers.map(|header| (HEADERS, header.value_secret_ref.clone())).collect();
        let proxied =
            Proxied::resolve::<RemoteProxies>(object.clone(), APP, secrets, settings, reader).await?;
        let mut inputs = Self { object, proxied, findings: Findings::default() };
        inputs.findings = findings(&inputs);
        Ok(inputs)
    }

    pub(super) fn spec(&self) -> &MCPRemoteProxySpec {
        &self.object.spec
    }

    /// The name of the Service in front of the proxy.
    pub(super) fn service(&self) -> String {
        service(&self.proxied.identity.name)
    }

    /// The ServiceAccount that is made for the proxy, and the Role that it has.
    pub(super) fn runner(&self) -> String {
        format!("{}-remote-proxy-runner", self.proxied.identity.name)
    }
}
