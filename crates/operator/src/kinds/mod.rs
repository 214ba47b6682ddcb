//! The kinds that have a controller of their own, one file or folder each, which implements
//! [`Controller`](crate::reconcile::Controller) for its type of the API. The kinds of configuration are under `config_refs`.

mod embedding_server;
mod mcp_group;
mod mcp_registry;
mod mcp_remote_proxy;
mod mcp_server;
mod mcp_server_entry;
mod virtual_mcp_composite_tool_definition;
mod virtual_mcp_server;
