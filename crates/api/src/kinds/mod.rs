//! k
mod mcp_external_auth_config;
mod mcp_server;
pub use mcp_external_auth_config::*;
pub use mcp_server::*;
