//! Aggregation of the backends' tools.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_with::apply;

use crate::zero::zero;

/// How the tools of the backends are combined.
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Aggregation {
    /// How name conflicts are resolved: `prefix`, `priority` or `manual`.
    #[serde_with(skip_apply)]
    pub conflict_resolution: String,
    /// The settings of the conflict resolution. The process requires them, even for `manual`.
    pub conflict_resolution_config: Option<ConflictResolution>,
    /// The tools of single backends.
    pub tools: Vec<WorkloadTools>,
    /// Whether all tools are hidden from clients.
    pub exclude_all_tools: bool,
    /// Whether tools of backends that `tools` does not name are shown: `allow` or `deny`.
    pub default_tool_visibility: String,
}

/// The settings of the conflict resolution.
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct ConflictResolution {
    /// The prefix of a tool's name.
    pub prefix_format: String,
    /// The backends, by descending priority.
    pub priority_order: Vec<String>,
}

/// The tools of one backend.
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct WorkloadTools {
    /// The backend.
    #[serde_with(skip_apply)]
    pub workload: String,
    /// An MCPToolConfig. The operator resolves it, and the process ignores it.
    pub tool_config_ref: Option<ToolConfigRef>,
    /// The tools to show. Empty means all.
    pub filter: Vec<String>,
    /// Overrides of tools.
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

/// Overrides of a tool's name, description and hints.
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct ToolChange {
    /// The name for clients.
    pub name: String,
    /// The description for clients.
    pub description: String,
    /// The hints for clients.
    pub annotations: Option<ToolHints>,
}

/// Hints about what a tool does.
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct ToolHints {
    /// A human-readable title.
    pub title: Option<String>,
    /// Whether it only reads.
    pub read_only_hint: Option<bool>,
    /// Whether it may delete or overwrite something.
    pub destructive_hint: Option<bool>,
    /// Whether a second call has no further effect.
    pub idempotent_hint: Option<bool>,
    /// Whether it interacts with external entities.
    pub open_world_hint: Option<bool>,
}
