//! How the tools of several backends become one list.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::{enums::text_enum, refs::ToolConfigRef, tools::ToolOverride};

/// How the tools of the backends are put together.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Aggregation {
    /// What happens when several backends have a tool of the same name.
    #[schemars(extend("default" = ConflictResolution::default()))]
    pub conflict_resolution: Option<ConflictResolution>,
    /// The details of the way that conflictResolution chooses.
    pub conflict_resolution_config: Option<ConflictResolutionConfig>,
    /// Whether the tools of backends that tools does not name are shown to clients. The default is allow.
    pub default_tool_visibility: Option<ToolVisibility>,
    /// Whether all tools of all backends are hidden from clients. Composite tools can still call them.
    pub exclude_all_tools: Option<bool>,
    /// Which tools of a backend are shown, and under what names. Each backend can be named once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<WorkloadTools>,
}

text_enum! {
    /// What happens to tools of the same name.
    pub enum ConflictResolution {
        /// Every tool gets a prefix that names its backend, whether it needs one or not.
        #[default]
        Prefix = "prefix",
        /// The backend that comes first in priorityOrder keeps the name, and the tools of the others are left out.
        Priority = "priority",
        /// You rename them, in tools. A name that is still taken twice is an error.
        Manual = "manual",
    }
}

text_enum! {
    /// Whether tools are shown to clients unless something else is said of them.
    pub enum ToolVisibility {
        /// They are shown.
        #[default]
        Allow = "allow",
        /// They are hidden. Composite tools can still call them.
        Deny = "deny",
    }
}

/// The details of how conflicts are resolved.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConflictResolutionConfig {
    /// What goes before the name of a tool with conflictResolution prefix. {workload} stands for the backend's name.
    #[schemars(extend("default" = "{workload}_"))]
    pub prefix_format: Option<String>,
    /// The names of backends, the most important first. Needed with conflictResolution priority. Tools that share a
    /// name and whose backends are all missing here get a prefix.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub priority_order: Vec<String>,
}

/// Which tools of one backend are shown, and under what names.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadTools {
    /// The name of the backend.
    pub workload: String,
    /// An MCPToolConfig to take the filter and overrides from. It only fills in what is not set here.
    pub tool_config_ref: Option<ToolConfigRef>,
    /// The tools to show, by the names that overrides give them, without a prefix. Empty means all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub filter: Vec<String>,
    /// What clients are told about a tool, by the name that the backend gives it. Each must set a name or a
    /// description.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub overrides: BTreeMap<String, ToolOverride>,
    /// Whether all tools of this backend are hidden. Composite tools can still call them.
    pub exclude_all: Option<bool>,
}
