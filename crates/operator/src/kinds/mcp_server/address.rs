//! The address of an MCPServer within the cluster.

use skep_api::kinds::{MCPServer, MCPServerSpec, Transport};

use crate::build::service_url;

/// The name of the Service in front of the proxy of a server of that name.
pub(super) fn service(name: &str) -> String {
    format!("mcp-{name}-proxy")
}

/// The transport that clients use.
pub(crate) fn transport(spec: &MCPServerSpec) -> &'static str {
    if spec.serves_sse() { Transport::Sse.as_str() } else { Transport::StreamableHttp.as_str() }
}

/// The address to give to clients.
pub(crate) fn url(server: &MCPServer) -> String {
    let name = server.metadata.name.as_deref().unwrap_or_default();
    let namespace = server.metadata.namespace.as_deref().unwrap_or_default();
    let base = service_url(&service(name), namespace, server.spec.proxy_port());
    // Names of objects need no escaping in a URL.
    if server.spec.serves_sse() { format!("{base}/sse#{name}") } else { format!("{base}/mcp") }
}
