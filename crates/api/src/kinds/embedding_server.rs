//! EmbeddingServer: computes embeddings, for semantic search of tools.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::{
    Quantity, RawObject,
    conditions::{self, Conditions},
    enums::text_enum,
    list,
    refs::SecretKeyRef,
    workload::{EnvVar, MetadataOverrides, Resources},
};

/// An EmbeddingServer runs a model that computes embeddings of texts (Text Embeddings Inference). A VirtualMCPServer
/// with the optimizer refers to it by embeddingServerRef and uses it to find tools that match a request.
#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "toolhive.stacklok.dev",
    version = "v1beta1",
    kind = "EmbeddingServer",
    plural = "embeddingservers",
    shortname = "emb",
    shortname = "embedding",
    category = "toolhive",
    namespaced,
    schema = "disabled",
    status = "EmbeddingServerStatus",
    derive = "Default",
    derive = "PartialEq",
    printcolumn(name = "Status", type_ = "string", json_path = ".status.phase"),
    printcolumn(name = "Model", type_ = "string", json_path = ".spec.model"),
    printcolumn(name = "Ready", type_ = "integer", json_path = ".status.readyReplicas"),
    printcolumn(name = "URL", type_ = "string", json_path = ".status.url"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct EmbeddingServerSpec {
    /// The model, by its name on Hugging Face.
    #[schemars(extend("default" = EmbeddingServerSpec::DEFAULT_MODEL))]
    pub model: Option<String>,
    /// The Secret key that holds a Hugging Face token, for models that require one.
    pub hf_token_secret_ref: Option<SecretKeyRef>,
    /// The container image of the server.
    #[schemars(extend("default" = EmbeddingServerSpec::DEFAULT_IMAGE))]
    pub image: Option<String>,
    /// When the image is pulled.
    #[schemars(extend("default" = ImagePullPolicy::default()))]
    pub image_pull_policy: Option<ImagePullPolicy>,
    /// The port that the server and its Service listen on.
    #[schemars(range(min = 1, max = 65535), extend("default" = EmbeddingServerSpec::DEFAULT_PORT))]
    pub port: Option<i32>,
    /// Further arguments for the server.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = list::atomic)]
    pub args: Vec<String>,
    /// Environment variables for the server.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = list::by_name)]
    pub env: Vec<EnvVar>,
    /// The resource requests and limits of the server's container.
    pub resources: Option<Resources>,
    /// A volume for the model, so that a restarted pod does not download it again.
    pub model_cache: Option<ModelCache>,
    /// A patch for the pod, in the format of a pod template. The server's container is called embedding.
    pub pod_template_spec: Option<RawObject>,
    /// Additions to the objects that run the server.
    pub resource_overrides: Option<EmbeddingServerOverrides>,
    /// How many pods to run.
    #[schemars(range(min = 1), extend("default" = EmbeddingServerSpec::DEFAULT_REPLICAS))]
    pub replicas: Option<i32>,
}

impl EmbeddingServerSpec {
    const DEFAULT_MODEL: &str = "BAAI/bge-small-en-v1.5";
    const DEFAULT_IMAGE: &str = "ghcr.io/huggingface/text-embeddings-inference:cpu-latest";
    const DEFAULT_PORT: i32 = 8080;
    const DEFAULT_REPLICAS: i32 = 1;

    /// The model, by its name on Hugging Face.
    pub fn model(&self) -> &str {
        self.model.as_deref().unwrap_or(Self::DEFAULT_MODEL)
    }

    /// The container image of the server.
    pub fn image(&self) -> &str {
        self.image.as_deref().unwrap_or(Self::DEFAULT_IMAGE)
    }

    /// The port of the server and its Service.
    pub fn port(&self) -> i32 {
        self.port.unwrap_or(Self::DEFAULT_PORT)
    }

    /// How many pods to run.
    pub fn replicas(&self) -> i32 {
        self.replicas.unwrap_or(Self::DEFAULT_REPLICAS)
    }
}

text_enum! {
    /// When a node pulls an image.
    pub enum ImagePullPolicy {
        /// Each time that a container starts.
        Always = "Always",
        /// Never: it must be on the node.
        Never = "Never",
        /// When it is not on the node.
        #[default]
        IfNotPresent = "IfNotPresent",
    }
}

text_enum! {
    /// How many nodes may mount a volume.
    pub enum AccessMode {
        /// Read-write by one node.
        #[default]
        ReadWriteOnce = "ReadWriteOnce",
        /// Read-write by many nodes.
        ReadWriteMany = "ReadWriteMany",
        /// Read-only by many nodes.
        ReadOnlyMany = "ReadOnlyMany",
    }
}

/// A volume for the model.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModelCache {
    /// Whether the volume is created.
    #[schemars(extend("default" = true))]
    pub enabled: Option<bool>,
    /// The size of the volume.
    #[schemars(extend("default" = ModelCache::DEFAULT_SIZE))]
    pub size: Option<Quantity>,
    /// The StorageClass of the volume. Without it, the cluster's default is used.
    pub storage_class_name: Option<String>,
    /// How many nodes may mount the volume.
    #[schemars(extend("default" = AccessMode::default()))]
    pub access_mode: Option<AccessMode>,
}

impl ModelCache {
    const DEFAULT_SIZE: &str = "10Gi";

    /// Whether the volume is created.
    pub fn enabled(&self) -> bool {
        self.enabled.unwrap_or(true)
    }

    /// The size of the volume.
    pub fn size(&self) -> &str {
        self.size.as_ref().map_or(Self::DEFAULT_SIZE, |size| &size.0)
    }
}

/// Additions to the objects that run an EmbeddingServer.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EmbeddingServerOverrides {
    /// Additions to the StatefulSet and its pods.
    pub stateful_set: Option<StatefulSetOverrides>,
    /// Additions to the Service.
    pub service: Option<MetadataOverrides>,
    /// Additions to the claim for the model's volume.
    pub persistent_volume_claim: Option<MetadataOverrides>,
}

/// Additions to a StatefulSet.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StatefulSetOverrides {
    /// Labels and annotations for the StatefulSet itself.
    #[serde(flatten)]
    pub metadata: MetadataOverrides,
    /// Labels and annotations for the pods.
    pub pod_template_metadata_overrides: Option<MetadataOverrides>,
}

text_enum! {
    /// The phase of an EmbeddingServer.
    pub enum EmbeddingServerPhase {
        /// Its pods are starting.
        #[default]
        Pending = "Pending",
        /// It downloads the model.
        Downloading = "Downloading",
        /// It serves requests.
        Ready = "Ready",
        /// It cannot run: see status.message and the conditions.
        Failed = "Failed",
        /// It is being deleted.
        Terminating = "Terminating",
    }
}

/// The observed state of an EmbeddingServer.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EmbeddingServerStatus {
    /// The generation of the spec that this status was computed from.
    pub observed_generation: Option<i64>,
    /// A one-word summary of the conditions.
    pub phase: Option<EmbeddingServerPhase>,
    /// The reason for the phase, in one sentence.
    pub message: Option<String>,
    /// The address of the server within the cluster.
    pub url: Option<String>,
    /// The number of ready pods.
    pub ready_replicas: Option<i32>,
    /// The conditions of the server.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions::schema")]
    pub conditions: Conditions,
}
