//! The version of a file's format.

use serde::{Deserialize, Serialize};

/// The version of a file's format. A file without one has the current version.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(transparent)]
pub struct SchemaVersion(pub String);

impl Default for SchemaVersion {
    fn default() -> Self {
        Self("v0.1.0".into())
    }
}
