//! The configuration of a virtual MCP server: what a VirtualMCPServer holds in `spec.config`, and what the process
//! reads from its `config.yaml`.

mod aggregation;
mod audit;
mod backend;
mod code_mode;
mod composite_tool;
mod incoming_auth;
mod operational;
mod optimizer;
mod outgoing_auth;
mod session_storage;
mod telemetry;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use serde_with::skip_serializing_none;

use crate::{list, rate_limit::RateLimiting, refs::CompositeToolRef};

pub use aggregation::*;
pub use audit::*;
pub use backend::*;
pub use code_mode::*;
pub use composite_tool::*;
pub use incoming_auth::*;
pub use operational::*;
pub use optimizer::*;
pub use outgoing_auth::*;
pub use session_storage::*;
pub use telemetry::*;

/// The configuration of a virtual MCP server.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct Config {
    /// The name of the server. In a VirtualMCPServer it is always the object's own.
    pub name: Option<String>,
    /// The name of the group that is served. In a VirtualMCPServer it is always that of spec.groupRef.
    pub group_ref: Option<String>,
    /// The servers behind this one. Leave it out to serve the members of the group as they come and go. With
    /// spec.outgoingAuth.source inline, the operator lists the members here itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub backends: Vec<Backend>,
    /// How clients are authenticated. In a VirtualMCPServer it is made from spec.incomingAuth: what is written here
    /// has no effect.
    pub incoming_auth: Option<IncomingAuth>,
    /// How the server authenticates to its backends. In a VirtualMCPServer it is made from spec.outgoingAuth: what is
    /// written here has no effect.
    pub outgoing_auth: Option<OutgoingAuth>,
    /// How the tools of the backends are put together: which are shown, and under what names. The default is to show
    /// all, each with a prefix that names its backend.
    pub aggregation: Option<Aggregation>,
    /// Tools that run a workflow of other tools. To share one between servers, make it a
    /// VirtualMCPCompositeToolDefinition and name it in compositeToolRefs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub composite_tools: Vec<CompositeTool>,
    /// VirtualMCPCompositeToolDefinitions whose tools are offered as well.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub composite_tool_refs: Vec<CompositeToolRef>,
    /// Timeouts, health checks and what happens when backends fail.
    pub operational: Option<Operational>,
    /// Notes of your own about the server. Nothing reads them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
    /// Where traces and metrics go. In a VirtualMCPServer it is made from spec.telemetryConfigRef: what is written
    /// here has no effect.
    pub telemetry: Option<Telemetry>,
    /// The audit log of requests.
    pub audit: Option<AuditLog>,
    /// Offers clients a search for tools in place of the whole list. Set it when the list is too long for a model to
    /// read.
    pub optimizer: Option<Optimizer>,
    /// Offers clients a tool that runs a script, which calls other tools.
    pub code_mode: Option<CodeMode>,
    /// Where sessions are kept. In a VirtualMCPServer it is made from spec.sessionStorage: what is written here has no
    /// effect.
    pub session_storage: Option<SessionStorageConfig>,
    /// Limits on how often tools are called. Needs spec.sessionStorage with provider redis.
    pub rate_limiting: Option<RateLimiting>,
    /// Headers of a client's request that are passed on to the backends, by name. In a VirtualMCPServer,
    /// spec.passthroughHeaders goes before it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = list::atomic)]
    pub passthrough_headers: Vec<String>,
    /// What else was written, kept as it is.
    #[serde(flatten)]
    #[schemars(skip)]
    pub unknown: Map<String, Value>,
}
