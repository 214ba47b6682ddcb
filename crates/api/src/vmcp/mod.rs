//! The configuration of a virtual MCP server: what a VirtualMCPServer holds in `spec.config`, and what the process
//! reads from its `config.yaml`.

mod aggregation;
mod audit;
mod backend;
pub mod check;
mod code_mode;
mod composite_tool;
mod file;
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
use serde_with::{apply, skip_serializing_none};

use crate::{list, rate_limit::RateLimiting, refs::CompositeToolRef, unset};

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
#[apply(Option<String> => #[serde(default, deserialize_with = "unset::non_zero")])]
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct Config {
    /// The name of the server. In a VirtualMCPServer it is always the object's own.
    pub name: Option<String>,
    /// The name of the group that is served. In a VirtualMCPServer it is always that of spec.groupRef.
    pub group_ref: Option<String>,
    /// The backends. Leave it out to discover the members of the group at run time. With spec.outgoingAuth.source
    /// inline, the operator lists the members here itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub backends: Vec<Backend>,
    /// How clients are authenticated. In a VirtualMCPServer it is derived from spec.incomingAuth: a value here has no
    /// effect.
    pub incoming_auth: Option<IncomingAuth>,
    /// How the server authenticates to its backends. In a VirtualMCPServer it is derived from spec.outgoingAuth: a
    /// value here has no effect.
    pub outgoing_auth: Option<OutgoingAuth>,
    /// How the tools of the backends are combined: which are offered, and under which names. The default is to offer
    /// all, each with its backend's name as a prefix.
    pub aggregation: Option<Aggregation>,
    /// Tools that run a workflow of other tools. To share one between servers, make it a
    /// VirtualMCPCompositeToolDefinition and name it in compositeToolRefs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub composite_tools: Vec<CompositeTool>,
    /// VirtualMCPCompositeToolDefinitions whose tools are offered as well.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub composite_tool_refs: Vec<CompositeToolRef>,
    /// Whether composite tools may have runAs: workflow, so that policies see the workflow instead of the caller. Before it is
    /// true, a composite tool that needs it is a mistake.
    #[serde(default, deserialize_with = "unset::non_zero")]
    pub allow_run_as_workflow: Option<bool>,
    /// Timeouts, health checks and what happens when backends fail.
    pub operational: Option<Operational>,
    /// User-defined metadata. It has no effect.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
    /// The configuration of traces and metrics. In a VirtualMCPServer it is derived from spec.telemetryConfigRef: a
    /// value here has no effect.
    pub telemetry: Option<Telemetry>,
    /// The audit log of requests.
    pub audit: Option<AuditLog>,
    /// Offers clients a tool search instead of the whole list of tools. Set it when the list is too long for a model.
    pub optimizer: Option<Optimizer>,
    /// Offers clients a tool that runs a script, which calls other tools.
    pub code_mode: Option<CodeMode>,
    /// Where sessions are stored. In a VirtualMCPServer it is derived from spec.sessionStorage: a value here has no
    /// effect.
    pub session_storage: Option<SessionStorageConfig>,
    /// Limits on how often tools are called. Needs spec.sessionStorage with provider redis.
    pub rate_limiting: Option<RateLimiting>,
    /// Headers of a client's request that are forwarded to the backends, by name. In a VirtualMCPServer,
    /// spec.passthroughHeaders takes precedence.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = list::atomic)]
    pub passthrough_headers: Vec<String>,
    /// Unknown fields, stored unchanged.
    #[serde(flatten)]
    #[schemars(skip)]
    pub unknown: Map<String, Value>,
}
