//! Overrides of tools.

use serde::{Deserialize, Serialize};
use serde_with::apply;

use crate::zero::zero;

/// Overrides of a tool's name and description. Empty fields override nothing.
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct ToolOverride {
    /// The name to offer the tool under.
    pub name: String,
    /// The description to offer the tool with.
    pub description: String,
}
