//! References from one object to another. All of them stay within the namespace.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::list;

/// The fields that refer to an object of this API, each with the kind of the object. A field of this name means the same in
/// every kind.
pub const REFERENCES: &[(&str, &str)] = &[
    ("authServerRef", "MCPExternalAuthConfig"),
    ("authzConfigRef", "MCPAuthzConfig"),
    ("compositeToolRefs", "VirtualMCPCompositeToolDefinition"),
    ("embeddingServerRef", "EmbeddingServer"),
    ("externalAuthConfigRef", "MCPExternalAuthConfig"),
    ("groupRef", "MCPGroup"),
    ("oidcConfigRef", "MCPOIDCConfig"),
    ("telemetryConfigRef", "MCPTelemetryConfig"),
    ("toolConfigRef", "MCPToolConfig"),
    ("webhookConfigRef", "MCPWebhookConfig"),
];

/// One key of a Secret.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecretKeyRef {
    /// The name of the Secret, in the same namespace.
    pub name: String,
    /// The key within the Secret whose value is used.
    pub key: String,
}

/// One key of a ConfigMap, as pods refer to it.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct ConfigMapKeySelector {
    /// The name of the ConfigMap, in the same namespace.
    #[schemars(extend("default" = ""))]
    pub name: Option<String>,
    /// The key within the ConfigMap whose value is used.
    pub key: String,
    /// Whether the pods may start without it.
    pub optional: Option<bool>,
}

/// One key of a Secret, as pods refer to it.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct SecretKeySelector {
    /// The name of the Secret, in the same namespace.
    #[schemars(extend("default" = ""))]
    pub name: Option<String>,
    /// The key within the Secret whose value is used.
    pub key: String,
    /// Whether the pods may start without it.
    pub optional: Option<bool>,
}

/// The name of an object. The field determines its kind.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct LocalObjectReference {
    /// The name of the object, in the same namespace.
    #[schemars(extend("default" = ""))]
    pub name: Option<String>,
}

/// The certificates of a private certificate authority.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CaBundleRef {
    /// The ConfigMap key that holds the certificates, in PEM. Its name may have at most 48 characters, because it
    /// becomes part of a volume's name. An empty key means ca.crt.
    pub config_map_ref: Option<ConfigMapKeySelector>,
}

/// The MCPGroup that the object is a member of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GroupRef {
    /// The name of the MCPGroup, in the same namespace.
    #[schemars(length(min = 1))]
    pub name: String,
}

/// The MCPAuthzConfig to enforce.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuthzConfigRef {
    /// The name of the MCPAuthzConfig, in the same namespace.
    #[schemars(length(min = 1))]
    pub name: String,
}

/// The MCPToolConfig to apply.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolConfigRef {
    /// The name of the MCPToolConfig, in the same namespace.
    pub name: String,
}

/// The MCPExternalAuthConfig to use.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExternalAuthConfigRef {
    /// The name of the MCPExternalAuthConfig, in the same namespace.
    pub name: String,
}

/// The EmbeddingServer to use.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EmbeddingServerRef {
    /// The name of the EmbeddingServer, in the same namespace.
    pub name: String,
}

/// The VirtualMCPCompositeToolDefinition to offer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CompositeToolRef {
    /// The name of the VirtualMCPCompositeToolDefinition, in the same namespace.
    pub name: String,
}

/// The MCPWebhookConfig to call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WebhookConfigRef {
    /// The name of the MCPWebhookConfig, in the same namespace.
    pub name: String,
}

/// The embedded authorization server to run.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuthServerRef {
    /// The kind of the object that describes the server.
    #[schemars(required, extend("default" = "MCPExternalAuthConfig", "enum" = ["MCPExternalAuthConfig"]))]
    pub kind: Option<String>,
    /// The name of the object, in the same namespace. It must be of type embeddedAuthServer.
    #[schemars(length(min = 1))]
    pub name: String,
}

/// The MCPOIDCConfig that defines which issuer's tokens are accepted, and what this server requires of them.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OidcConfigRef {
    /// The name of the MCPOIDCConfig, in the same namespace.
    #[schemars(length(min = 1))]
    pub name: String,
    /// The audience that a token must carry. Set a different one for each server, so that a token for one is not
    /// accepted by another.
    #[schemars(length(min = 1))]
    pub audience: String,
    /// The scopes that are advertised to clients in the protected-resource metadata.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = list::atomic)]
    pub scopes: Vec<String>,
    /// The public URL of this server, as used by clients, for the protected-resource metadata (RFC 9728). Set it when
    /// the server is reached through an ingress; the default is an address within the cluster.
    pub resource_url: Option<String>,
}

/// The MCPTelemetryConfig to use, and the service name of this server.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TelemetryConfigRef {
    /// The name of the MCPTelemetryConfig, in the same namespace.
    #[schemars(length(min = 1))]
    pub name: String,
    /// The service name on traces and metrics. The default is the name of the object that holds this reference.
    pub service_name: Option<String>,
}

/// A workload that refers to a configuration object.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadReference {
    /// The kind of the workload, for example MCPServer.
    #[schemars(length(min = 1))]
    pub kind: String,
    /// The name of the workload, in the same namespace.
    #[schemars(length(min = 1))]
    pub name: String,
}
