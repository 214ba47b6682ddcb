//! The audit log of the process.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::{apply, skip_serializing_none};

use crate::{number, unset};

/// What is written to the audit log, and where: one line of JSON for each request.
#[apply(
    Option<bool> => #[serde(default, deserialize_with = "unset::non_zero")],
    Option<String> => #[serde(default, deserialize_with = "unset::non_zero")],
    Option<i64> => #[serde(default, deserialize_with = "unset::non_zero")],
)]
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuditLog {
    /// Whether each MCP request is written to the audit log, with the caller, the operation and its outcome.
    #[schemars(extend("default" = false))]
    pub enabled: Option<bool>,
    /// The name that entries carry. The default is the name of the server.
    pub component: Option<String>,
    /// The types of events to write, for example mcp_tool_call. Empty means all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub event_types: Vec<String>,
    /// The types of events to exclude, even if eventTypes includes them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclude_event_types: Vec<String>,
    /// Whether the bodies of requests are written. They may contain sensitive data.
    #[schemars(extend("default" = false))]
    pub include_request_data: Option<bool>,
    /// Whether the bodies of responses are written. They may contain sensitive data.
    #[schemars(extend("default" = false))]
    pub include_response_data: Option<bool>,
    /// Whether response bodies are inspected for errors that the HTTP status does not show, so that those are not
    /// logged as successes.
    #[schemars(extend("default" = true))]
    #[serde_with(skip_apply)]
    pub detect_application_errors: Option<bool>,
    /// The largest body that is written, in bytes. A larger one is omitted.
    #[schemars(extend("default" = 1024), transform = number::plain_integer)]
    pub max_data_size: Option<i64>,
    /// How many actors of a delegation chain are written, when a token has an act claim.
    #[schemars(range(min = 1), extend("default" = 10), transform = number::plain_integer)]
    pub max_delegation_depth: Option<i64>,
    /// The file to append to. The default is standard output.
    pub log_file: Option<String>,
}
