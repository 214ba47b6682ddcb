//! The stream of calls that proxies and virtual MCP servers offer to the console.

/// Its path.
pub const PATH: &str = "/skep/calls";

/// The audience of a token for the calls of one object. Such a token is of no use at any other, nor at the API server: if the
/// pods of this one are hostile, they learn nothing from it.
pub fn audience(kind: &str, namespace: &str, name: &str) -> String {
    format!("skep-calls/{kind}/{namespace}/{name}")
}
