//! The audit log of the process.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::number;

/// What is written to the audit log, and where: one line of JSON for each request.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuditLog {
    /// Whether each MCP request is written to the audit log, with who asked for what and how it ended.
    #[schemars(extend("default" = false))]
    pub enabled: Option<bool>,
    /// The name that entries carry. The default is the name of the server.
    pub component: Option<String>,
    /// The types of events to write, for example mcp_tool_call. Empty means all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub event_types: Vec<String>,
    /// The types of events to leave out, even those that eventTypes names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclude_event_types: Vec<String>,
    /// Whether the bodies of requests are written. They may hold what should not be in a log.
    #[schemars(extend("default" = false))]
    pub include_request_data: Option<bool>,
    /// Whether the bodies of answers are written. They may hold what should not be in a log.
    #[schemars(extend("default" = false))]
    pub include_response_data: Option<bool>,
    /// Whether answers are looked into for errors that the HTTP status does not tell, so that they are not written as
    /// successes.
    #[schemars(extend("default" = true))]
    pub detect_application_errors: Option<bool>,
    /// The largest body that is written, in bytes. A larger one is left out.
    #[schemars(extend("default" = 1024), transform = number::plain_integer)]
    pub max_data_size: Option<i64>,
    /// How many of those who act for one another are written, when a token says that its bearer acts for someone else.
    #[schemars(range(min = 1), extend("default" = 10), transform = number::plain_integer)]
    pub max_delegation_depth: Option<i64>,
    /// The file to append to. The default is standard output.
    pub log_file: Option<String>,
}
