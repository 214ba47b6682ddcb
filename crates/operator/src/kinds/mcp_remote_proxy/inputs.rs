//! Everything that an MCPRemoteProxy's children and status depend on, looked up once.

use std::sync::Arc;

use skep_api::kinds::{MCPRemoteProxy, MCPRemoteProxySpec};
use skep_world::{ReadError, Reader};

use super::address::service;
use crate::{
    proxy_workload::ProxyWorkload, reconcile::Resolve, resources::PlatformSecrets, settings::Settings,
};

/// The label `app` of the proxies of MCPRemoteProxies.
const APP: &str = "mcpremoteproxy";

/// The field that refers to Secrets with the values of headers.
pub(super) const HEADERS: &str = "headerForward.addHeadersFromSecret";

/// The inputs of an MCPRemoteProxy.
pub struct Inputs {
    pub(super) object: Arc<MCPRemoteProxy>,
    pub(super) proxy: ProxyWorkload,
    pub(super) platform_secrets: PlatformSecrets,
}

impl Resolve<MCPRemoteProxy> for Inputs {
    async fn resolve(
        object: Arc<MCPRemoteProxy>,
        settings: &Arc<Settings>,
        reader: &mut Reader,
    ) -> Result<Self, ReadError> {
        let headers = object.spec.header_forward.iter().flat_map(|headers| &headers.add_headers_from_secret);
        let secrets = headers.map(|header| (HEADERS.into(), header.value_secret_ref.clone())).collect();
        let proxy = ProxyWorkload::resolve(object.clone(), APP, secrets, settings.clone(), reader).await?;
        let platform_secrets = PlatformSecrets::read(reader, [runner(&proxy.identity.name)]);
        Ok(Self { object, proxy, platform_secrets })
    }
}

impl Inputs {
    pub(super) fn spec(&self) -> &MCPRemoteProxySpec {
        &self.object.spec
    }

    /// The name of the Service in front of the proxy.
    pub(super) fn service(&self) -> String {
        service(&self.proxy.identity.name)
    }

    /// The name of the proxy's ServiceAccount and Role, if they are created for it.
    pub(super) fn runner(&self) -> String {
        runner(&self.proxy.identity.name)
    }
}

pub(super) fn runner(proxy: &str) -> String {
    format!("{proxy}-remote-proxy-runner")
}
