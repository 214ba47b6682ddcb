//! The API of skep: the kinds of the group `toolhive.stacklok.dev`.
//!
//! The Rust types are the source. Their doc comments are the manual that `kubectl explain` prints, their attributes
//! are the validation rules that the API server enforces, and [`crd::crds`] turns both into the
//! CustomResourceDefinitions under `charts/`. Nothing here does I/O.
//!
//! Two conventions hold for every type:
//!
//! * What the user left out stays `None` or empty, so that an object survives reading and writing unchanged.
//!   A field with a default has it in its schema and, where code needs it, in a method of the same name. In the
//!   configuration of a virtual MCP server, a zero that means "not set" becomes `None` (`unset`).
//! * Every list defines how it is shared: [`list::atomic`] has one writer, [`list::set`] and the keyed ones
//!   can be written by several appliers at once.

pub mod crd;
mod duration;
mod enums;
mod number;
mod quantity;
mod raw;
mod schema;
mod unset;

pub mod auth_server;
pub mod authz;
pub mod conditions;
pub mod config_status;
pub mod events;
pub mod external_auth;
pub mod kinds;
pub mod list;
pub mod rate_limit;
pub mod refs;
pub mod server_report;
pub mod strategy;
pub mod strict;
pub mod tools;
pub mod vmcp;
pub mod workload;

pub use duration::Duration;
pub use quantity::Quantity;
pub use raw::{RawObject, RawValue};

/// The API group of every kind.
pub const GROUP: &str = "toolhive.stacklok.dev";
