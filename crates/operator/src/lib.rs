//! The operator: custom resources in, running and secured MCP servers out.
//!
//! Every kind is worked on in the same four steps by one [`driver`].

mod build;
mod children;
pub mod conditions;
pub mod driver;
pub mod facts;
pub mod notice;
mod parts;
mod reference;
pub mod settings;
pub mod watched;
