//! Names of objects and containers that the operator and the proxy share.

/// The field manager of the proxy, which writes the StatefulSet and the Services of an MCP server.
pub const PROXY_FIELD_MANAGER: &str = "toolhive-container-manager";

/// The field manager of the proxy for the part of its object's status that only it knows.
pub const PROXY_STATUS_MANAGER: &str = "skep-proxy-status";

/// The container of a proxy's pod.
pub const PROXY_CONTAINER: &str = "toolhive";
/// The container of a virtual MCP server's pod.
pub const VMCP_CONTAINER: &str = "vmcp";
/// The field manager of a virtual MCP server's pods, which write the part of the status that only they know.
pub const VMCP_FIELD_MANAGER: &str = "vmcp-status-reporter";
/// The key in a virtual MCP server's Secret that binds sessions to their callers.
pub const SESSION_KEY: &str = "hmac-secret";
/// The container of an MCP server's pod.
pub const MCP_CONTAINER: &str = "mcp";

/// The flag of a proxy that carries a patch for the pod template of its MCP server, as JSON.
pub const POD_PATCH_FLAG: &str = "--k8s-pod-patch";

/// The ConfigMap that holds a workload's RunConfig file.
pub fn run_config(workload: &str) -> String {
    format!("{workload}-runconfig")
}

/// The ConfigMap that holds the configuration of a virtual MCP server.
pub fn vmcp_config(server: &str) -> String {
    format!("{server}-vmcp-config")
}

/// The Secret of a virtual MCP server with its [`SESSION_KEY`].
pub fn session_secret(server: &str) -> String {
    format!("{server}-hmac-secret")
}

/// The Service through which a proxy reaches its MCP server.
pub fn backend_service(server: &str) -> String {
    format!("mcp-{server}")
}

/// The headless Service, which gives each pod of an MCP server a DNS name.
pub fn headless_service(server: &str) -> String {
    format!("mcp-{server}-headless")
}
