//! Objects and containers that one plane makes and the other one finds.

/// Who writes the StatefulSet and the Services of an MCP server: the proxy, as its field manager.
pub const PROXY_FIELD_MANAGER: &str = "toolhive-container-manager";

/// The container of a proxy's pod.
pub const PROXY_CONTAINER: &str = "toolhive";
/// The container of a virtual MCP server's pod.
pub const VMCP_CONTAINER: &str = "vmcp";
/// Who writes the part of a VirtualMCPServer's status that only its running pods know: the pods, as their field manager.
pub const VMCP_FIELD_MANAGER: &str = "vmcp-status-reporter";
/// The key of a virtual MCP server's Secret that binds sessions to who opened them.
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

/// The Service that gives each pod of an MCP server a name.
pub fn headless_service(server: &str) -> String {
    format!("mcp-{server}-headless")
}
