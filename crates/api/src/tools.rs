//! The metadata of a tool as clients see it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::{apply, skip_serializing_none};

use crate::unset;

/// Hints about what a tool does, for clients that decide whether to prompt before they call it. Nothing enforces
/// them.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolAnnotations {
    /// A display title.
    pub title: Option<String>,
    /// Whether the tool only reads.
    pub read_only_hint: Option<bool>,
    /// Whether the tool may delete or overwrite something. It has no meaning for a tool that only reads.
    pub destructive_hint: Option<bool>,
    /// Whether a second call with the same arguments has no further effect.
    pub idempotent_hint: Option<bool>,
    /// Whether the tool interacts with external systems, such as a web search.
    pub open_world_hint: Option<bool>,
}

/// Overrides of a tool's metadata. Fields that are not set keep the server's values.
#[apply(Option<String> => #[serde(default, deserialize_with = "unset::non_zero")])]
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolOverride {
    /// The name to offer the tool under.
    pub name: Option<String>,
    /// The description to offer the tool with.
    pub description: Option<String>,
    /// Hints to offer the tool with. Those not set keep the server's values.
    pub annotations: Option<ToolAnnotations>,
}
