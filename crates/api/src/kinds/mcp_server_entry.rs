//! MCPServerEntry: a remote MCP server as a member of a group, with no pod of its own.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::{
    conditions::{self, Conditions},
    enums::text_enum,
    refs::{CaBundleRef, ExternalAuthConfigRef, GroupRef},
    workload::{HeaderForward, RemoteTransport},
};

/// An MCPServerEntry makes a remote MCP server a member of a group, for a VirtualMCPServer to serve. It runs no pod:
/// the VirtualMCPServer calls the remote server itself. Use an MCPRemoteProxy where the remote server needs a proxy
/// of its own.
#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "toolhive.stacklok.dev",
    version = "v1beta1",
    kind = "MCPServerEntry",
    plural = "mcpserverentries",
    shortname = "mcpentry",
    category = "toolhive",
    namespaced,
    schema = "disabled",
    status = "MCPServerEntryStatus",
    derive = "Default",
    derive = "PartialEq",
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(name = "Transport", type_ = "string", json_path = ".spec.transport"),
    printcolumn(name = "Remote URL", type_ = "string", json_path = ".spec.remoteUrl"),
    printcolumn(name = "Group", type_ = "string", json_path = ".spec.groupRef.name"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct MCPServerEntrySpec {
    /// The address of the remote MCP server. Addresses of the node, of the cluster's own API and of cloud metadata
    /// services are always rejected.
    #[schemars(regex(pattern = "^https?://"))]
    pub remote_url: String,
    /// Whether remoteUrl may be a private address or a name within the cluster.
    #[schemars(extend("default" = false))]
    pub allow_private_endpoint: Option<bool>,
    /// The MCP transport of the remote server.
    pub transport: RemoteTransport,
    /// The MCPGroup that the entry is a member of.
    pub group_ref: GroupRef,
    /// An MCPExternalAuthConfig that defines how to authenticate to the remote server.
    pub external_auth_config_ref: Option<ExternalAuthConfigRef>,
    /// Headers to add to every request to the remote server.
    pub header_forward: Option<HeaderForward>,
    /// The CA certificates for a remote server whose certificate is signed by a private authority.
    pub ca_bundle_ref: Option<CaBundleRef>,
}

text_enum! {
    /// Whether an entry can be used.
    pub enum MCPServerEntryPhase {
        /// All objects that it refers to exist.
        Valid = "Valid",
        /// It has not been reconciled yet, or its group does not exist yet.
        #[default]
        Pending = "Pending",
        /// It cannot be used: see the conditions.
        Failed = "Failed",
    }
}

/// The observed state of an MCPServerEntry.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MCPServerEntryStatus {
    /// The generation of the spec that this status was computed from.
    pub observed_generation: Option<i64>,
    /// Whether the entry can be used, in one word.
    #[schemars(extend("default" = MCPServerEntryPhase::default()))]
    pub phase: Option<MCPServerEntryPhase>,
    /// The conditions of the entry.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions::schema")]
    pub conditions: Conditions,
}
