//! The operator: custom resources in, running and secured MCP servers out.

mod build;
mod parts;
pub mod settings;
