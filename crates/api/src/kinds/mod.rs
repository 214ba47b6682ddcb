//! The kinds, one file each.

mod mcp_server;
mod virtual_mcp_composite_tool_definition;
mod virtual_mcp_server;

pub use mcp_server::*;
pub use virtual_mcp_composite_tool_definition::*;
pub use virtual_mcp_server::*;
