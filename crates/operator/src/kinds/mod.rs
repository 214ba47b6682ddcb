//! The kinds, one folder or file each.

mod mcp_server;

pub use mcp_server::McpServers;
