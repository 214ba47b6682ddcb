//! The address of an MCPRemoteProxy within the cluster.

use skep_api::kinds::MCPRemoteProxy;

use crate::build::service_url;

/// The name of the Service in front of a proxy of that name.
pub(super) fn service(name: &str) -> String {
    format!("mcp-{name}-remote-proxy")
}

/// The address to give to clients.
pub(crate) fn url(proxy: &MCPRemoteProxy) -> String {
    let name = proxy.metadata.name.as_deref().unwrap_or_default();
    let namespace = proxy.metadata.namespace.as_deref().unwrap_or_default();
    service_url(&service(name), namespace, proxy.spec.proxy_port())
}
