//! MCPGroup: a named group of servers.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::{
    conditions::{self, Conditions},
    enums::text_enum,
    list,
};

/// An MCPGroup is a named group of MCP servers. MCPServers, MCPRemoteProxies and MCPServerEntries join it with their
/// groupRef; a VirtualMCPServer offers its members as one server.
#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "toolhive.stacklok.dev",
    version = "v1beta1",
    kind = "MCPGroup",
    plural = "mcpgroups",
    shortname = "mcpg",
    shortname = "mcpgroup",
    category = "toolhive",
    namespaced,
    schema = "disabled",
    status = "MCPGroupStatus",
    derive = "Default",
    derive = "PartialEq",
    printcolumn(name = "Servers", type_ = "integer", json_path = ".status.serverCount"),
    printcolumn(name = "Proxies", type_ = "integer", json_path = ".status.remoteProxyCount"),
    printcolumn(name = "Entries", type_ = "integer", json_path = ".status.entryCount"),
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(
        name = "Checked",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='MCPServersChecked')].status"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct MCPGroupSpec {
    /// A description of the group.
    pub description: Option<String>,
}

text_enum! {
    /// Whether the members of a group are known.
    pub enum MCPGroupPhase {
        /// The members are listed in the status.
        Ready = "Ready",
        /// The group has not been reconciled yet.
        #[default]
        Pending = "Pending",
        /// The members could not be listed: see the conditions.
        Failed = "Failed",
    }
}

/// The observed state of an MCPGroup.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MCPGroupStatus {
    /// The generation of the spec that this status was computed from.
    pub observed_generation: Option<i64>,
    /// Whether the members are known, in one word.
    #[schemars(extend("default" = MCPGroupPhase::default()))]
    pub phase: Option<MCPGroupPhase>,
    /// The names of the MCPServers in the group.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = list::set)]
    pub servers: Vec<String>,
    /// How many MCPServers are in the group.
    pub server_count: Option<i32>,
    /// The names of the MCPRemoteProxies in the group.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = list::set)]
    pub remote_proxies: Vec<String>,
    /// How many MCPRemoteProxies are in the group.
    pub remote_proxy_count: Option<i32>,
    /// The names of the MCPServerEntries in the group.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = list::set)]
    pub entries: Vec<String>,
    /// How many MCPServerEntries are in the group.
    pub entry_count: Option<i32>,
    /// The conditions of the group.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions::schema")]
    pub conditions: Conditions,
}
