//! What a server offers, as its proxy reports it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::list;

/// What the server offers, as its proxy has seen it.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServerReport {
    /// The name that the server gives itself.
    pub name: Option<String>,
    /// The version that the server gives itself.
    pub version: Option<String>,
    /// The revisions of MCP that it speaks, as far as they are known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = list::atomic)]
    pub protocol_versions: Vec<String>,
    /// The number of its tools.
    pub tool_count: Option<i32>,
    /// The number of its prompts.
    pub prompt_count: Option<i32>,
    /// The number of its resources.
    pub resource_count: Option<i32>,
    /// The number of its resource templates.
    pub resource_template_count: Option<i32>,
    /// Its tools, by name. At most 200 are listed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = list::atomic)]
    pub tools: Vec<ReportedTool>,
}

/// A tool of a server.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReportedTool {
    /// The name of the tool. Long names are truncated.
    pub name: String,
    /// The name for people, if it has one.
    pub title: Option<String>,
    /// What the server claims about it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = list::atomic)]
    pub hints: Vec<String>,
    /// A digest of its definition, which changes whenever anything in it does.
    pub digest: String,
}
