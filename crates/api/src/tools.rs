//! Tools as users shape them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

/// What to change about one tool. What is left out stays as the server has it.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolOverride {
    /// The name to offer the tool under.
    pub name: Option<String>,
    /// The description to offer the tool with.
    pub description: Option<String>,
    /// The hints to offer the tool with.
    pub annotations: Option<ToolAnnotations>,
}

/// Hints about how a tool behaves. They inform clients and models; they enforce nothing.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolAnnotations {
    /// A title for people to read.
    pub title: Option<String>,
    /// Whether the tool only reads.
    pub read_only_hint: Option<bool>,
    /// Whether the tool may destroy something.
    pub destructive_hint: Option<bool>,
    /// Whether calling the tool again with the same arguments changes nothing more.
    pub idempotent_hint: Option<bool>,
    /// Whether the tool reaches out to things beyond the server, such as the web.
    pub open_world_hint: Option<bool>,
}
