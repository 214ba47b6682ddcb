//! The operator: custom resources in, running and secured MCP servers out.
//!
//! Every kind is reconciled in the same five steps: `resolve` looks up what the object refers to, once;
//! `validate` finds mistakes, and gives valid inputs; `children` builds the children of these alone;
//! [`reconcile`] writes those that differ; `status` computes the report. Only the first and the fourth do
//! I/O.
//!
//! A kind is a file or folder under [`kinds`], or a file under `config_refs` if it is a configuration, together with what
//! workloads take from it. What MCPServer and MCPRemoteProxy share is under `proxy_workload`, what the kinds of configuration
//! share under `config_controller`, and Kubernetes objects that several kinds build under `build`. [`resources`] is what is
//! watched, and [`run`] the process.

mod build;
mod config_controller;
mod config_refs;
pub mod kinds;
pub mod migrator;
mod proxy_workload;
pub mod reconcile;
pub mod resources;
pub mod run;
pub mod settings;

pub use run::{permissions, plan, render};
