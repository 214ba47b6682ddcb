//! MCPRegistry: a registry server.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::{
    RawObject, RawValue,
    conditions::{self, Conditions},
    enums::text_enum,
    list,
    refs::{LocalObjectReference, SecretKeySelector},
};

/// An MCPRegistry runs a registry server, which publishes a catalogue of MCP servers. The kind is deprecated: install
/// the registry server by its own chart instead.
#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "toolhive.stacklok.dev",
    version = "v1beta1",
    kind = "MCPRegistry",
    plural = "mcpregistries",
    shortname = "mcpreg",
    shortname = "registry",
    category = "toolhive",
    namespaced,
    schema = "disabled",
    status = "MCPRegistryStatus",
    deprecated = "MCPRegistry is deprecated; install the registry server by its own Helm chart, toolhive-registry-server",
    derive = "Default",
    derive = "PartialEq",
    printcolumn(name = "Status", type_ = "string", json_path = ".status.phase"),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Ready')].status"
    ),
    printcolumn(name = "Replicas", type_ = "integer", json_path = ".status.readyReplicas"),
    printcolumn(name = "URL", type_ = "string", json_path = ".status.url"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct MCPRegistrySpec {
    /// The complete configuration file of the registry server, as YAML. The operator does not parse it.
    #[serde(rename = "configYAML")]
    #[schemars(length(min = 1))]
    pub config_yaml: String,
    /// A display name. It has no effect.
    pub display_name: Option<String>,
    /// Volumes to add to the pod, in the format of a pod's volumes: the files that configYAML refers to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = list::atomic, extend("x-kubernetes-preserve-unknown-fields" = true))]
    pub volumes: Vec<RawValue>,
    /// Where to mount these volumes, in the format of a container's volumeMounts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = list::atomic, extend("x-kubernetes-preserve-unknown-fields" = true))]
    pub volume_mounts: Vec<RawValue>,
    /// The Secret key that holds a pgpass file with the passwords of the PostgreSQL database.
    pub pgpass_secret_ref: Option<SecretKeySelector>,
    /// A patch for the pod, in the format of a pod template. The server's container is called registry-api.
    pub pod_template_spec: Option<RawObject>,
    /// The image pull secrets. The operator's defaults are added.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = list::atomic)]
    pub image_pull_secrets: Vec<LocalObjectReference>,
}

text_enum! {
    /// The phase of an MCPRegistry.
    pub enum MCPRegistryPhase {
        /// Its pod is starting.
        #[default]
        Pending = "Pending",
        /// It serves requests.
        Ready = "Ready",
        /// It cannot run: see status.message and the conditions.
        Failed = "Failed",
        /// It is being deleted.
        Terminating = "Terminating",
    }
}

/// The observed state of an MCPRegistry.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MCPRegistryStatus {
    /// The generation of the spec that this status was computed from.
    pub observed_generation: Option<i64>,
    /// A one-word summary of the conditions.
    pub phase: Option<MCPRegistryPhase>,
    /// The reason for the phase, in one sentence.
    pub message: Option<String>,
    /// The address of the registry within the cluster.
    pub url: Option<String>,
    /// The number of ready pods.
    pub ready_replicas: Option<i32>,
    /// The conditions of the registry.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions::schema")]
    pub conditions: Conditions,
}
