//! What the operator and the proxy agree on.
//!
//! The operator writes files, annotations and environment variables; the proxy, in a pod of its own, reads them. Both
//! take the names and the shapes from here, so that neither can drift from the other. They are ToolHive's: either
//! side can stand opposite ToolHive's own. Nothing here does I/O.

pub mod annotations;
pub mod env;
pub mod labels;
pub mod objects;
pub mod paths;
pub mod ports;

pub mod json;

mod checksum;

pub use checksum::checksum;
pub use json::Json;
