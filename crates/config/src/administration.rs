//! What proxies and virtual MCP servers with an authorization server offer to administrators.

/// The path of the sessions of users.
pub const SESSIONS: &str = "/skep/sessions";
/// The path of the clients that have registered.
pub const CLIENTS: &str = "/skep/clients";

/// The API group of the objects.
pub const GROUP: &str = "toolhive.stacklok.dev";
/// The subresource of an object that administrators may `get` to list, and `delete` to end and to forget. It exists in roles only.
pub const SUBRESOURCE: &str = "sessions";

/// The audience of a token for the administration of one object. Such a token is of no use at any other, nor at the API server.
pub fn audience(kind: &str, namespace: &str, name: &str) -> String {
    format!("skep-sessions/{kind}/{namespace}/{name}")
}

/// The plural of a kind that can have an authorization server, as roles name it.
pub fn resource(kind: &str) -> Option<&'static str> {
    match kind {
        "MCPServer" => Some("mcpservers"),
        "MCPRemoteProxy" => Some("mcpremoteproxies"),
        "VirtualMCPServer" => Some("virtualmcpservers"),
        _ => None,
    }
}
