//! The interface between the operator and the proxy: files, names and paths.
//!
//! The operator writes files, annotations and environment variables; the proxy, in another pod, reads them. Both
//! use the definitions here, so that neither can deviate from the other. They are ToolHive's: either side works
//! together with ToolHive's own. Nothing here does I/O.
//!
//! Files omit fields that are not set, and reading them ignores unknown keys. An empty string, zero and an empty list
//! count as not set; where zero is a distinct value, the field is an `Option`. The configuration of a virtual MCP server
//! is part of the API: `skep_api::vmcp`.

pub mod administration;
pub mod annotations;
pub mod calls;
pub mod env;
pub mod headers;
pub mod labels;
pub mod objects;
pub mod paths;
pub mod ports;

pub mod auth_server;
pub mod field;
pub mod run_config;
pub mod yaml;

mod checksum;
mod schema_version;
mod zero;

pub use auth_server::AuthServer;
pub use checksum::{DataChecksum, checksum, fingerprint, sha256};
pub use field::{FieldError, FieldPath};
pub use run_config::RunConfig;
pub use schema_version::SchemaVersion;
pub use skep_gocompat::{Json, duration};
