//! The kinds, one file each.

mod embedding_server;
mod mcp_authz_config;
mod mcp_external_auth_config;
mod mcp_group;
mod mcp_oidc_config;
mod mcp_registry;
mod mcp_remote_proxy;
mod mcp_server;
mod mcp_server_entry;
mod mcp_telemetry_config;
mod mcp_tool_config;
mod mcp_webhook_config;
mod virtual_mcp_composite_tool_definition;
mod virtual_mcp_server;

pub use embedding_server::*;
pub use mcp_authz_config::*;
pub use mcp_external_auth_config::*;
pub use mcp_group::*;
pub use mcp_oidc_config::*;
pub use mcp_registry::*;
pub use mcp_remote_proxy::*;
pub use mcp_server::*;
pub use mcp_server_entry::*;
pub use mcp_telemetry_config::*;
pub use mcp_tool_config::*;
pub use mcp_webhook_config::*;
pub use virtual_mcp_composite_tool_definition::*;
pub use virtual_mcp_server::*;
