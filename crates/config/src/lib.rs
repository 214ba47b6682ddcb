//! What the operator and the proxy agree on.
//!
//! The operator writes files, annotations and environment variables; the proxy, in a pod of its own, reads them. Both
//! take the names and the shapes from here, so that neither can drift from the other. They are ToolHive's: either
//! side can stand opposite ToolHive's own. Nothing here does I/O.
//!
//! In the files, what is not set is left out, and reading ignores keys that are unknown, but for the configuration of a
//! virtual MCP server, where an unknown key is an error. A text that is empty, a number
//! that is zero and a list without items are not set; where zero is a value of its own, a field is an `Option`.

pub mod annotations;
pub mod env;
pub mod labels;
pub mod objects;
pub mod paths;
pub mod ports;

pub mod auth_server;
pub mod run_config;
pub mod vmcp;

mod checksum;
mod schema_version;
mod yaml;
mod zero;

pub use auth_server::AuthServer;
pub use checksum::{DataChecksum, checksum, fingerprint, sha256};
pub use run_config::RunConfig;
pub use schema_version::SchemaVersion;
pub use skep_gocompat::{Json, duration};
