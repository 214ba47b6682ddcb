//! MCPWebhookConfig: other programs that have a say in requests.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::{Duration, config_status::ConfigStatus, duration, enums::text_enum, refs::SecretKeyRef};

/// An MCPWebhookConfig names HTTP endpoints that are asked about every MCP request before it reaches the server:
/// mutating webhooks may change it, then validating webhooks may refuse it. MCPServers use it by webhookConfigRef.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "toolhive.stacklok.dev",
    version = "v1alpha1",
    kind = "MCPWebhookConfig",
    plural = "mcpwebhookconfigs",
    shortname = "mwc",
    category = "toolhive",
    namespaced,
    schema = "disabled",
    status = "ConfigStatus",
    derive = "Default",
    derive = "PartialEq",
    printcolumn(
        name = "Valid",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Valid')].status"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "(has(self.validating) ? size(self.validating) : 0) + (has(self.mutating) ? size(self.mutating) : 0) > 0",
    "message": "set at least one webhook in validating or mutating",
}]))]
pub struct MCPWebhookConfigSpec {
    /// Webhooks that may change a request. They are called one after another, each with what the one before left.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mutating: Vec<Webhook>,
    /// Webhooks that may refuse a request. They see it as the mutating ones left it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub validating: Vec<Webhook>,
}

/// An HTTP endpoint that has a say in requests.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Webhook {
    /// A name for the webhook, for logs and errors. Give each its own.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// Where to send requests. It must be https, unless tlsConfig.insecureSkipVerify is set.
    #[schemars(extend("format" = "uri"))]
    pub url: String,
    /// How long to wait for an answer, from 1s to 30s. The default is 10s.
    #[schemars(transform = duration::unchecked, extend("format" = "duration"))]
    pub timeout: Option<Duration>,
    /// What happens to a request when the webhook cannot be reached or answers nonsense.
    #[schemars(extend("default" = FailurePolicy::default()))]
    pub failure_policy: Option<FailurePolicy>,
    /// How the connection is secured, where the usual certificates are not enough.
    pub tls_config: Option<WebhookTls>,
    /// The Secret key that holds a key for HMAC signatures, by which the webhook can tell that a request is from the
    /// proxy.
    pub hmac_secret_ref: Option<SecretKeyRef>,
}

text_enum! {
    /// What happens when a webhook gives no usable answer.
    pub enum FailurePolicy {
        /// The MCP request is refused.
        #[default]
        Fail = "fail",
        /// The MCP request goes on as if the webhook were not there.
        Ignore = "ignore",
    }
}

/// How a connection to a webhook is secured.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WebhookTls {
    /// The Secret key that holds the certificates to trust, in PEM, when the webhook's is signed by a private
    /// authority.
    pub ca_secret_ref: Option<SecretKeyRef>,
    /// The Secret key that holds the certificate by which the proxy proves who it is. Needs clientKeySecretRef.
    pub client_cert_secret_ref: Option<SecretKeyRef>,
    /// The Secret key that holds the private key of that certificate. Needs clientCertSecretRef.
    pub client_key_secret_ref: Option<SecretKeyRef>,
    /// Whether the webhook's certificate is taken without being checked. Only for trying things out.
    pub insecure_skip_verify: Option<bool>,
}
