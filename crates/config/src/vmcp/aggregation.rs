//! How the tools of several backends become one list.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_with::apply;

use crate::zero::zero;

/// How the tools of the backends are put together.
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Aggregation {
    /// What happens to tools of the same name: `prefix`, `priority` or `manual`.
    #[serde_with(skip_apply)]
    pub conflict_resolution: String,
    /// The details of it. The process asks for them, even for `manual`.
    pub conflict_resolution_config: Option<ConflictResolution>,
    /// Which tools of a backend are shown, and under what names.
    pub tools: Vec<WorkloadTools>,
    /// Whether all tools are hidden from clients.
    pub exclude_all_tools: bool,
    /// Whether tools of backends that `tools` does not name are shown: `allow` or `deny`.
    pub default_tool_visibility: String,
}

/// The details of how conflicts are resolved.
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct ConflictResolution {
    /// What goes before the name of a tool.
    pub prefix_format: String,
    /// The backends, the most important first.
    pub priority_order: Vec<String>,
}

/// Which tools of one backend are shown, and under what names.
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct WorkloadTools {
    /// The backend.
    #[serde_with(skip_apply)]
    pub workload: String,
    /// An MCPToolConfig. The operator follows it, and the process ignores it.
    pub tool_config_ref: Option<ToolConfigRef>,
    /// The tools to show. Empty means all.
    pub filter: Vec<String>,
    /// What clients are told about tools.
    pub overrides: BTreeMap<String, ToolChange>,
    /// Whether all tools of the backend are hidden.
    pub exclude_all: bool,
}

/// An MCPToolConfig.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct ToolConfigRef {
    /// Its name.
    pub name: String,
}

/// What clients are told about a tool instead of what its backend says.
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct ToolChange {
    /// The name to offer the tool under.
    pub name: String,
    /// The description to offer the tool with.
    pub description: String,
    /// Hints to offer the tool with.
    pub annotations: Option<ToolHints>,
}

/// Hints about what a tool does.
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct ToolHints {
    /// A title for people to read.
    pub title: Option<String>,
    /// Whether it changes nothing.
    pub read_only_hint: Option<bool>,
    /// Whether it may delete or overwrite something.
    pub destructive_hint: Option<bool>,
    /// Whether a second call has no further effect.
    pub idempotent_hint: Option<bool>,
    /// Whether it reaches out to a world that it does not control.
    pub open_world_hint: Option<bool>,
}
