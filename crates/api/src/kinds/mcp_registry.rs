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
    /// The configuration file of the registry server, whole, as YAML. The operator does not look into it.
    #[serde(rename = "configYAML")]
    #[schemars(length(min = 1))]
    pub config_yaml: String,
    /// A name for people to read. It has no effect.
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
    /// Secrets with which the image is pulled. The operator's defaults are added.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = list::atomic)]
    pub image_pull_secrets: Vec<LocalObjectReference>,
}

text_enum! {
    /// Where an MCPRegistry is in its life.
    pub enum MCPRegistryPhase {
        /// Its pod is on its way.
        #[default]
        Pending = "Pending",
        /// It answers requests.
        Ready = "Ready",
        /// It cannot run as it is: status.message and the conditions say why.
        Failed = "Failed",
        /// It is being deleted.
        Terminating = "Terminating",
    }
}

/// What is known of an MCPRegistry.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MCPRegistryStatus {
    /// The generation of the spec that this status is about.
    pub observed_generation: Option<i64>,
    /// Where the registry is in its life, in one word.
    pub phase: Option<MCPRegistryPhase>,
    /// Why the phase is what it is, in one sentence.
    pub message: Option<String>,
    /// The address of the registry within the cluster.
    pub url: Option<String>,
    /// How many pods are ready.
    pub ready_replicas: Option<i32>,
    /// The state of the registry, aspect by aspect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions::schema")]
    pub conditions: Conditions,
}
