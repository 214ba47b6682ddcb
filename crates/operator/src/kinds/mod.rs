//! The kinds, one folder each.

mod mcp_remote_proxy;
mod mcp_server;

use std::sync::Arc;

pub use mcp_remote_proxy::McpRemoteProxies;
pub use mcp_server::McpServers;

use crate::{driver::Controller, settings::Settings};

/// Whoever needs every kind that is worked on.
pub(crate) trait Visit {
    fn visit<C: Controller>(&mut self, controller: C);
}

/// Every kind that is worked on. This is the one list of them: what is watched, what the operator is allowed, who works
/// on an object and what can be rendered all follow from it.
pub(crate) fn each(settings: &Arc<Settings>, visitor: &mut impl Visit) {
    visitor.visit(McpServers::new(settings.clone()));
    visitor.visit(McpRemoteProxies::new(settings.clone()));
}
