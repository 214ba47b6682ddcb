//! What clients are told about a tool.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

/// Hints about what a tool does, for clients that decide whether to ask before they call it. Nothing enforces them.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolAnnotations {
    /// A title for people to read.
    pub title: Option<String>,
    /// Whether the tool only looks things up and changes nothing.
    pub read_only_hint: Option<bool>,
    /// Whether the tool may delete or overwrite something. It says nothing about a tool that changes nothing.
    pub destructive_hint: Option<bool>,
    /// Whether a second call with the same arguments has no further effect.
    pub idempotent_hint: Option<bool>,
    /// Whether the tool reaches out to a world that it does not control, as a web search does.
    pub open_world_hint: Option<bool>,
}

/// What clients are told about a tool instead of what its server says. What is left out stays as it is.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolOverride {
    /// The name to offer the tool under.
    pub name: Option<String>,
    /// The description to offer the tool with.
    pub description: Option<String>,
    /// Hints to offer the tool with. Those left out stay as the server set them.
    pub annotations: Option<ToolAnnotations>,
}
