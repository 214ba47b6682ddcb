//! The kinds, one file or folder each. Each implements [`Controller`](crate::reconcile::Controller) for its type of the API,
//! or [`Config`](crate::config_controller::Config) if it is a configuration.

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
