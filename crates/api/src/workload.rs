//! Types shared by the kinds that run pods.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::{
    Quantity,
    enums::text_enum,
    list,
    refs::{LocalObjectReference, SecretKeyRef},
};

/// The port that a proxy listens on by default.
pub const DEFAULT_PROXY_PORT: i32 = 8080;

text_enum! {
    /// Whether requests of a client are always sent to the same pod.
    pub enum SessionAffinity {
        /// Requests from one client address are sent to one pod. Needed for sessions in memory.
        #[default]
        ClientIp = "ClientIP",
        /// Requests are sent to any pod. Use it with shared sessions or stateless servers.
        None = "None",
    }
}

text_enum! {
    /// The MCP transport of a server that is reached over the network.
    pub enum RemoteTransport {
        /// HTTP with server-sent events, the deprecated transport of 2024.
        Sse = "sse",
        /// Streamable HTTP.
        #[default]
        StreamableHttp = "streamable-http",
    }
}

text_enum! {
    /// Where MCP sessions are stored.
    pub enum SessionProvider {
        /// In the pod's memory. They are lost when the pod ends, and replicas do not share them.
        #[default]
        Memory = "memory",
        /// In Redis, shared by all replicas.
        Redis = "redis",
    }
}

/// An environment variable with a plain value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EnvVar {
    /// The name of the variable.
    pub name: String,
    /// Its value. It is stored in plain text: use a Secret for secrets.
    pub value: String,
}

/// The resource requests and limits of a container.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Resources {
    /// The resource limits of the container.
    pub limits: Option<ResourceList>,
    /// The resource requests of the container, which the scheduler reserves.
    pub requests: Option<ResourceList>,
}

/// Amounts of CPU and memory.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceList {
    /// CPU, in cores or thousandths of a core: 1, 0.5 or 500m.
    pub cpu: Option<Quantity>,
    /// Memory, in bytes or with a suffix: 128Mi, 2Gi.
    pub memory: Option<Quantity>,
}

/// Labels and annotations to add to an object. They never replace those that skep sets itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MetadataOverrides {
    /// Annotations to add.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// Labels to add.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

/// Additions to the objects that run the proxy.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProxyOverrides {
    /// Additions to the proxy's Deployment and its pods.
    pub proxy_deployment: Option<ProxyDeploymentOverrides>,
    /// Additions to the Service in front of the proxy, for example the annotations of a cloud's load balancer.
    pub proxy_service: Option<MetadataOverrides>,
}

/// Additions to the proxy's Deployment.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProxyDeploymentOverrides {
    /// Annotations for the Deployment itself. The pods do not get them: see podTemplateMetadataOverrides.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// Labels for the Deployment itself. The pods do not get them: see podTemplateMetadataOverrides.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Labels and annotations for the pods: for example those that configure an injector such as the Vault Agent.
    pub pod_template_metadata_overrides: Option<MetadataOverrides>,
    /// Environment variables for the proxy's container. A variable that skep sets itself keeps skep's value.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = list::by_name)]
    pub env: Vec<EnvVar>,
    /// The image pull secrets of the pods. The operator's defaults are added.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = list::atomic)]
    pub image_pull_secrets: Vec<LocalObjectReference>,
}

/// Where MCP sessions are stored, so that several replicas can share them.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "self.provider == 'redis' ? has(self.address) : true",
    "message": "address must be set when provider is redis, as host:port",
}]))]
pub struct SessionStorage {
    /// Where sessions are stored. With more than one replica, choose redis.
    pub provider: SessionProvider,
    /// The address of Redis, as host:port. Needed with provider redis. For TLS, rediss://host:port; for
    /// Sentinels, redis+sentinel://host:port,host:port/primary; for a cluster, redis+cluster://host:port.
    #[schemars(length(min = 1))]
    pub address: Option<String>,
    /// The number of the Redis database.
    #[schemars(range(min = 0), extend("default" = 0))]
    pub db: Option<i32>,
    /// A prefix for every key, so that several installations can share one Redis.
    pub key_prefix: Option<String>,
    /// The Secret key that holds the Redis password. Leave it out when Redis requires none.
    pub password_ref: Option<SecretKeyRef>,
}

/// Whether requests are written to the audit log.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Audit {
    /// Whether each MCP request is written to the proxy's audit log, with the caller, the operation and its outcome.
    /// Bodies are not written.
    #[schemars(extend("default" = false))]
    pub enabled: Option<bool>,
}

/// Headers that the proxy adds to every request to a remote server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HeaderForward {
    /// Headers with plain values. They are stored in plain text: put secrets into addHeadersFromSecret.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub add_plaintext_headers: BTreeMap<String, String>,
    /// Headers whose values are taken from Secrets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = list::by_header_name)]
    pub add_headers_from_secret: Vec<HeaderFromSecret>,
}

/// A header whose value is taken from a Secret.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HeaderFromSecret {
    /// The name of the header, for example X-API-Key.
    #[schemars(length(min = 1, max = 255))]
    pub header_name: String,
    /// The Secret key that holds the value.
    pub value_secret_ref: SecretKeyRef,
}
