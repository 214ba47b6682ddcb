//! MCPWebhookConfig: webhooks that change or reject requests.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::{Duration, config_status::ConfigStatus, duration, enums::text_enum, refs::SecretKeyRef};

/// An MCPWebhookConfig names HTTP endpoints that are called for every MCP request before it reaches the server:
/// mutating webhooks may change it, then validating webhooks may reject it. MCPServers use it by webhookConfigRef.
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
    /// Webhooks that may change a request. They are called in order, each with the request as changed by the previous
    /// one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mutating: Vec<Webhook>,
    /// Webhooks that may reject a request. They are called after the mutating ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub validating: Vec<Webhook>,
}

/// An HTTP endpoint that changes or rejects requests.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Webhook {
    /// A unique name for the webhook, for logs and errors.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// Where to send requests. It must be https, unless tlsConfig.insecureSkipVerify is set.
    #[schemars(extend("format" = "uri"))]
    pub url: String,
    /// How long to wait for a response, from 1s to 30s. The default is 10s.
    #[schemars(transform = duration::unchecked, extend("format" = "duration"))]
    pub timeout: Option<Duration>,
    /// What happens to a request when the webhook is unreachable or returns an invalid response.
    #[schemars(extend("default" = FailurePolicy::default()))]
    pub failure_policy: Option<FailurePolicy>,
    /// TLS settings, where the public certificate authorities are not enough.
    pub tls_config: Option<WebhookTls>,
    /// The Secret key that holds a key for HMAC signatures, with which the webhook can verify that a request is from
    /// the proxy.
    pub hmac_secret_ref: Option<SecretKeyRef>,
}

text_enum! {
    /// What happens when a webhook returns no valid response.
    pub enum FailurePolicy {
        /// The MCP request is rejected.
        #[default]
        Fail = "fail",
        /// The MCP request is processed as if the webhook did not exist.
        Ignore = "ignore",
    }
}

/// TLS settings for a webhook.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WebhookTls {
    /// The Secret key that holds the CA certificates, in PEM, for a webhook whose certificate is signed by a private
    /// authority.
    pub ca_secret_ref: Option<SecretKeyRef>,
    /// The Secret key that holds the client certificate of the proxy. Needs clientKeySecretRef.
    pub client_cert_secret_ref: Option<SecretKeyRef>,
    /// The Secret key that holds the private key of that certificate. Needs clientCertSecretRef.
    pub client_key_secret_ref: Option<SecretKeyRef>,
    /// Whether verification of the webhook's certificate is skipped. For tests only.
    pub insecure_skip_verify: Option<bool>,
}
