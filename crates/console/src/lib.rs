//! The console: a page in the browser that shows what runs, what it offers, and why something is not as wished.
//!
//! It knows objects of the API and nothing of how they run. [`Objects`] holds them as they are now, with their status: `skep run`
//! keeps it up to date from its own servers, and in a cluster [`follow`] does, by watches. [`CallLogs`] has the log of calls of each
//! server, which [`follow_calls`] reads from its pods. A [`Console`] serves both: the page itself (`assets`), its data as JSON and as a stream of changes (`api`), and the MCP
//! endpoint of each server, through which the page is a client like any other (`mcp`), and the sessions of users at
//! authorization servers (`sessions`).
//!
//! Who may look is decided before anything is read (`access`). Texts of others are sent as JSON, and the page shows them as
//! text.

mod access;
mod api;
mod assets;
mod calls;
mod cluster;
mod console;
mod endpoint;
mod limits;
mod links;
mod mcp;
mod objects;
mod responses;
mod restarts;
mod service;
mod sessions;

pub use access::{Access, ClusterAccess, LocalAccess, Login};
pub use calls::CallLogs;
pub use cluster::{Account, follow, follow_calls, rules, session_rules};
pub use console::Console;
pub use endpoint::Endpoint;
pub use links::Links;
pub use objects::{Key, Objects, tool_count};
pub use restarts::{Restart, restarts};
pub use skep_auth::LoginSettings;
pub use skep_gateway::{Workers, http::serve, middleware::CallLog};
