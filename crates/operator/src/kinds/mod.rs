//! The kinds, one file or folder each.

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

use std::sync::Arc;

pub use embedding_server::Embeddings;
pub use mcp_registry::McpRegistries;
pub use mcp_remote_proxy::McpRemoteProxies;
pub use mcp_server::McpServers;
pub use virtual_mcp_server::VirtualMcpServers;

use crate::{configs::Configs, driver::Controller, settings::Settings};

/// Whoever needs every kind that is worked on.
pub(crate) trait Visit {
    fn visit<C: Controller>(&mut self, controller: C);
}

/// Every kind that is worked on. This is the one list of them: what is watched, what the operator is allowed, who works
/// on an object and what can be rendered all follow from it.
pub(crate) fn each(settings: &Arc<Settings>, visitor: &mut impl Visit) {
    visitor.visit(McpServers::new(settings.clone()));
    visitor.visit(McpRemoteProxies::new(settings.clone()));
    visitor.visit(mcp_server_entry::McpServerEntries);
    visitor.visit(VirtualMcpServers::new(settings.clone()));
    visitor.visit(mcp_group::McpGroups);
    visitor.visit(virtual_mcp_composite_tool_definition::CompositeToolDefinitions);
    visitor.visit(Embeddings::new(settings.clone()));
    visitor.visit(McpRegistries::new(settings.clone()));
    visitor.visit(Configs::<mcp_authz_config::McpAuthzConfig>::default());
    visitor.visit(Configs::<mcp_external_auth_config::McpExternalAuthConfig>::default());
    visitor.visit(Configs::<mcp_oidc_config::McpOidcConfig>::default());
    visitor.visit(Configs::<mcp_telemetry_config::McpTelemetryConfig>::default());
    visitor.visit(Configs::<mcp_tool_config::McpToolConfig>::default());
    visitor.visit(Configs::<mcp_webhook_config::McpWebhookConfig>::default());
}
