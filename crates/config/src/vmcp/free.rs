//! Parts of any shape.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A value of any shape: a JSON Schema, or the arguments of a tool.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(transparent)]
pub struct Free(pub Value);

impl Free {
    /// Whether it has no content.
    pub fn is_empty(&self) -> bool {
        match &self.0 {
            Value::Null => true,
            Value::Object(map) => map.is_empty(),
            _ => false,
        }
    }
}
