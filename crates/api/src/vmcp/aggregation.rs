//! How the tools of several backends are combined.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::{apply, skip_serializing_none};

use crate::{enums::text_enum, refs::ToolConfigRef, tools::ToolOverride, unset};

/// How the tools of the backends are combined.
#[apply(
    Option<ConflictResolution> => #[serde(default, deserialize_with = "unset::non_zero")],
    Option<ToolVisibility> => #[serde(default, deserialize_with = "unset::non_zero")],
    Option<bool> => #[serde(default, deserialize_with = "unset::non_zero")],
)]
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Aggregation {
    /// What happens when several backends have a tool of the same name.
    #[schemars(extend("default" = ConflictResolution::default()))]
    pub conflict_resolution: Option<ConflictResolution>,
    /// The parameters of conflictResolution.
    pub conflict_resolution_config: Option<ConflictResolutionConfig>,
    /// Whether the tools of backends that tools does not name are offered to clients. The default is allow.
    pub default_tool_visibility: Option<ToolVisibility>,
    /// Whether all tools of all backends are hidden from clients. Composite tools can still call them.
    pub exclude_all_tools: Option<bool>,
    /// Which tools of a backend are offered, and under which names. Each backend can be named once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<WorkloadTools>,
}

text_enum! {
    /// What happens to tools of the same name.
    pub enum ConflictResolution {
        /// Every tool gets its backend's name as a prefix, even without a conflict.
        #[default]
        Prefix = "prefix",
        /// The backend that comes first in priorityOrder keeps the name; the tools of the others are omitted.
        Priority = "priority",
        /// Conflicts must be resolved by renaming in tools. A remaining conflict is an error.
        Manual = "manual",
    }
}

text_enum! {
    /// Whether tools are offered to clients by default.
    pub enum ToolVisibility {
        /// They are offered.
        #[default]
        Allow = "allow",
        /// They are hidden. Composite tools can still call them.
        Deny = "deny",
    }
}

/// The parameters of conflict resolution.
#[apply(Option<String> => #[serde(default, deserialize_with = "unset::non_zero")])]
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConflictResolutionConfig {
    /// The prefix of tool names with conflictResolution prefix. {workload} is replaced by the backend's name.
    #[schemars(extend("default" = "{workload}_"))]
    pub prefix_format: Option<String>,
    /// The names of backends, the most important first. Needed with conflictResolution priority. Tools that share a
    /// name and whose backends are all missing here get a prefix.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub priority_order: Vec<String>,
}

/// Which tools of one backend are offered, and under which names.
#[apply(Option<bool> => #[serde(default, deserialize_with = "unset::non_zero")])]
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadTools {
    /// The name of the backend.
    pub workload: String,
    /// An MCPToolConfig to take the filter and overrides from. It only fills in what is not set here.
    pub tool_config_ref: Option<ToolConfigRef>,
    /// The tools to offer, by the names that overrides give them, without a prefix. Empty means all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub filter: Vec<String>,
    /// Overrides of a tool's metadata, by the backend's name for the tool. Each must set a name or a description.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub overrides: BTreeMap<String, ToolOverride>,
    /// Whether all tools of this backend are hidden. Composite tools can still call them.
    pub exclude_all: Option<bool>,
}
