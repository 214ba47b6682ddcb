//! The configuration file of a virtual MCP server. An unknown key is an error.

mod aggregation;
mod composite_tool;
mod free;
mod incoming_auth;
mod operational;
mod outgoing_auth;
mod search;
mod sessions;
mod strict;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_with::apply;

use crate::{
    run_config::{Audit, Telemetry},
    yaml,
    zero::zero,
};

pub use aggregation::*;
pub use composite_tool::*;
pub use free::Free;
pub use incoming_auth::*;
pub use operational::*;
pub use outgoing_auth::*;
pub use search::*;
pub use sessions::*;

/// The configuration. Its fields have the order of the file.
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Config {
    /// The name of the server.
    pub name: String,
    /// The group whose members are the backends.
    #[serde_with(skip_apply)]
    pub group_ref: String,
    /// The backends. Without any, they are discovered as members of the group.
    pub backends: Vec<Backend>,
    /// How clients are authenticated.
    pub incoming_auth: Option<IncomingAuth>,
    /// How the server authenticates to its backends.
    pub outgoing_auth: Option<OutgoingAuth>,
    /// How the tools of the backends are combined.
    pub aggregation: Option<Aggregation>,
    /// Tools that run a workflow.
    pub composite_tools: Vec<CompositeTool>,
    /// The definitions of some of these. It has no effect.
    pub composite_tool_refs: Vec<CompositeToolRef>,
    /// Timeouts, health checks and what happens when backends fail.
    pub operational: Option<Operational>,
    /// Notes. They have no effect.
    pub metadata: BTreeMap<String, String>,
    /// Traces and metrics.
    #[serde(deserialize_with = "strict::known")]
    pub telemetry: Option<Telemetry>,
    /// The audit log.
    #[serde(deserialize_with = "strict::known")]
    pub audit: Option<Audit>,
    /// A search for tools in place of the whole list.
    pub optimizer: Option<Optimizer>,
    /// A tool that runs scripts.
    pub code_mode: Option<CodeMode>,
    /// The store of sessions.
    pub session_storage: Option<SessionStorage>,
    /// The rate limits of tool calls.
    pub rate_limiting: Option<RateLimits>,
    /// Headers of a client's request that are forwarded to the backends.
    pub passthrough_headers: Vec<String>,
}

impl Config {
    /// Parses the text of a file.
    pub fn parse(text: &str) -> Result<Self, serde_saphyr::Error> {
        // With a snippet of the text, the message would have several lines.
        let options = serde_saphyr::options! { with_snippet: false };
        serde_saphyr::from_str_with_options(text, options)
    }

    /// The text of the file.
    pub fn render(&self) -> Result<String, yaml::Error> {
        yaml::render(self)
    }
}

/// A backend.
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Backend {
    /// Its name, with which other parts refer to it.
    #[serde_with(skip_apply)]
    pub name: String,
    /// The address of its MCP endpoint.
    #[serde_with(skip_apply)]
    pub url: String,
    /// Its transport: `sse` or `streamable-http`.
    #[serde_with(skip_apply)]
    pub transport: String,
    /// Its type: [`Backend::ENTRY`], or empty for a workload of the cluster.
    #[serde(rename = "type")]
    pub type_: String,
    /// A file with the certificate authority of an entry.
    pub ca_bundle_path: String,
    /// Notes about it.
    pub metadata: BTreeMap<String, String>,
}

impl Backend {
    /// An external server.
    pub const ENTRY: &str = "entry";
}

/// A reference to the definition of a composite tool.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct CompositeToolRef {
    /// The VirtualMCPCompositeToolDefinition.
    pub name: String,
}
