//! The configuration of a virtual MCP server: the file that its process reads. A key that is unknown is an error.

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

/// The configuration. Its fields stand in the order that they are written in, which the checksum depends on.
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Config {
    /// The name of the server.
    pub name: String,
    /// The group whose members are served.
    #[serde_with(skip_apply)]
    pub group_ref: String,
    /// The servers behind this one. Without any, they are discovered, as members of the group.
    pub backends: Vec<Backend>,
    /// How clients are authenticated.
    pub incoming_auth: Option<IncomingAuth>,
    /// How the server authenticates to its backends.
    pub outgoing_auth: Option<OutgoingAuth>,
    /// How the tools of the backends are put together.
    pub aggregation: Option<Aggregation>,
    /// Tools that run a workflow.
    pub composite_tools: Vec<CompositeTool>,
    /// Where some of these come from. Nothing reads it.
    pub composite_tool_refs: Vec<CompositeToolRef>,
    /// Timeouts, health checks and what happens when backends fail.
    pub operational: Option<Operational>,
    /// Notes. Nothing reads them.
    pub metadata: BTreeMap<String, String>,
    /// Which traces and metrics there are, and where they go.
    #[serde(deserialize_with = "strict::known")]
    pub telemetry: Option<Telemetry>,
    /// The audit log.
    #[serde(deserialize_with = "strict::known")]
    pub audit: Option<Audit>,
    /// A search for tools in place of the whole list.
    pub optimizer: Option<Optimizer>,
    /// A tool that runs scripts.
    pub code_mode: Option<CodeMode>,
    /// Where sessions are kept.
    pub session_storage: Option<SessionStorage>,
    /// How often tools may be called.
    pub rate_limiting: Option<RateLimits>,
    /// Headers of a client's request that are passed on to the backends.
    pub passthrough_headers: Vec<String>,
}

impl Config {
    /// Reads the text of a file.
    pub fn parse(text: &str) -> Result<Self, serde_saphyr::Error> {
        // A snippet of the text would make the message one of many lines.
        let options = serde_saphyr::options! { with_snippet: false };
        serde_saphyr::from_str_with_options(text, options)
    }

    /// The text of the file.
    pub fn render(&self) -> Result<String, yaml::Error> {
        yaml::render(self)
    }
}

/// A server behind this one.
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Backend {
    /// Its name, by which other parts refer to it.
    #[serde_with(skip_apply)]
    pub name: String,
    /// The address of its MCP endpoint.
    #[serde_with(skip_apply)]
    pub url: String,
    /// How it speaks MCP: `sse` or `streamable-http`.
    #[serde_with(skip_apply)]
    pub transport: String,
    /// What it is: [`Backend::ENTRY`], or nothing for a workload of the cluster.
    #[serde(rename = "type")]
    pub type_: String,
    /// A file with the certificate authority of an entry.
    pub ca_bundle_path: String,
    /// What is known of it beside that.
    pub metadata: BTreeMap<String, String>,
}

impl Backend {
    /// A server elsewhere, reached directly.
    pub const ENTRY: &str = "entry";
}

/// Where a composite tool comes from.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct CompositeToolRef {
    /// The VirtualMCPCompositeToolDefinition.
    pub name: String,
}
