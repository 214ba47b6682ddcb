//! The operator: custom resources in, running and secured MCP servers out.
//!
//! Every kind is worked on in the same four steps by one [`driver`]: `resolve` looks up what the object refers to,
//! once; `desired` computes the children, `status` the report, both without I/O; the driver writes what differs. A
//! kind is a folder under [`kinds`]; what several kinds build alike is under `build`, what they read from the configurations
//! that they refer to under `parts`, and what the two kinds with a proxy before one server share under `proxied`.

mod build;
mod children;
pub mod conditions;
mod configs;
pub mod driver;
mod drivers;
pub mod facts;
pub mod kinds;
pub mod migrator;
pub mod notice;
mod parts;
pub mod permissions;
pub mod plan;
mod platform;
mod proxied;
mod reference;
pub mod refers;
pub mod render;
mod requests;
pub mod run;
pub mod settings;
pub mod watched;
