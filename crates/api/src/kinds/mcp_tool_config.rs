//! MCPToolConfig: which tools are offered, and under which names.

use std::collections::BTreeMap;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{config_status::ConfigStatus, list, tools::ToolOverride};

/// An MCPToolConfig chooses which tools of a server are offered, and can give them other names and descriptions.
/// Servers use it by toolConfigRef.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "toolhive.stacklok.dev",
    version = "v1beta1",
    kind = "MCPToolConfig",
    plural = "mcptoolconfigs",
    shortname = "tc",
    shortname = "toolconfig",
    category = "toolhive",
    namespaced,
    schema = "disabled",
    status = "ConfigStatus",
    derive = "Default",
    derive = "PartialEq",
    printcolumn(
        name = "Valid",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Valid')].status"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct MCPToolConfigSpec {
    /// The tools to offer, by the names that the server gives them or that toolsOverride gives them. Others are
    /// neither listed nor callable. Without it, all tools are offered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = list::set)]
    pub tools_filter: Vec<String>,
    /// What to change about tools, keyed by the name that the server gives them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tools_override: BTreeMap<String, ToolOverride>,
}
