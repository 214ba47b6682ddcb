//! MCPOIDCConfig: which issuer's tokens are accepted.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::{
    config_status::ConfigStatus,
    enums::text_enum,
    refs::{CaBundleRef, SecretKeyRef},
};

/// An MCPOIDCConfig defines which issuer's access tokens are accepted, and how they are validated. Servers share it
/// by oidcConfigRef, where each sets its own audience.
#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "toolhive.stacklok.dev",
    version = "v1beta1",
    kind = "MCPOIDCConfig",
    plural = "mcpoidcconfigs",
    shortname = "mcpoidc",
    category = "toolhive",
    namespaced,
    schema = "disabled",
    status = "ConfigStatus",
    derive = "Default",
    derive = "PartialEq",
    printcolumn(name = "Source", type_ = "string", json_path = ".spec.type"),
    printcolumn(
        name = "Valid",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Valid')].status"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {
        "rule": "self.type == 'kubernetesServiceAccount' ? has(self.kubernetesServiceAccount) : !has(self.kubernetesServiceAccount)",
        "message": "kubernetesServiceAccount must be set when type is kubernetesServiceAccount, and left out otherwise",
    },
    {
        "rule": "self.type == 'inline' ? has(self.inline) : !has(self.inline)",
        "message": "inline must be set when type is inline, and left out otherwise",
    },
]))]
pub struct MCPOIDCConfigSpec {
    /// Who issues the tokens.
    #[serde(rename = "type")]
    pub type_: OidcSource,
    /// How tokens of the cluster's own service accounts are validated. Set it with type kubernetesServiceAccount.
    pub kubernetes_service_account: Option<KubernetesServiceAccountOidc>,
    /// The identity provider, inline. Set it with type inline.
    pub inline: Option<InlineOidc>,
}

text_enum! {
    /// Who issues the tokens that are accepted.
    pub enum OidcSource {
        /// The cluster: callers are its service accounts.
        #[default]
        KubernetesServiceAccount = "kubernetesServiceAccount",
        /// An identity provider that is described in the object.
        Inline = "inline",
    }
}

/// How tokens of the cluster's service accounts are validated.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KubernetesServiceAccountOidc {
    /// Accepted for compatibility, without effect. Use authorization policies to restrict which accounts may call.
    pub service_account: Option<String>,
    /// Accepted for compatibility, without effect. Use authorization policies to restrict which accounts may call.
    pub namespace: Option<String>,
    /// The issuer that tokens must name. Set it where the cluster's issuer is not the default.
    #[schemars(extend("default" = KubernetesServiceAccountOidc::DEFAULT_ISSUER))]
    pub issuer: Option<String>,
    /// The URL of the issuer's keys (JWKS). Without it, they are discovered.
    pub jwks_url: Option<String>,
    /// The introspection endpoint for tokens that are not JWTs (RFC 7662).
    pub introspection_url: Option<String>,
    /// Whether the proxy fetches the keys from the cluster with its own service account and the cluster's CA
    /// certificates. The default is true.
    pub use_cluster_auth: Option<bool>,
}

impl KubernetesServiceAccountOidc {
    const DEFAULT_ISSUER: &str = "https://kubernetes.default.svc";

    /// The issuer that tokens must name.
    pub fn issuer(&self) -> &str {
        self.issuer.as_deref().unwrap_or(Self::DEFAULT_ISSUER)
    }

    /// Whether the proxy fetches the keys from the cluster with its own service account.
    pub fn use_cluster_auth(&self) -> bool {
        self.use_cluster_auth.unwrap_or(true)
    }
}

/// An identity provider.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InlineOidc {
    /// The issuer that tokens must name, as a URL. Its OpenID configuration is discovered there.
    pub issuer: String,
    /// The URL of the issuer's keys (JWKS). Without it, it is taken from the issuer's OpenID configuration.
    pub jwks_url: Option<String>,
    /// The introspection endpoint for tokens that are not JWTs (RFC 7662).
    pub introspection_url: Option<String>,
    /// The client ID of the proxy at the provider, for introspection.
    pub client_id: Option<String>,
    /// The Secret key that holds the client's secret.
    pub client_secret_ref: Option<SecretKeyRef>,
    /// The CA certificates for a provider whose certificate is signed by a private authority.
    pub ca_bundle_ref: Option<CaBundleRef>,
    /// A file in the proxy's container with a token to send when the keys are fetched.
    pub jwks_auth_token_path: Option<String>,
    /// Whether the keys may be fetched from a private address.
    #[serde(rename = "jwksAllowPrivateIP")]
    #[schemars(extend("default" = false))]
    pub jwks_allow_private_ip: Option<bool>,
    /// Whether the protected-resource metadata may name a private address.
    #[serde(rename = "protectedResourceAllowPrivateIP")]
    #[schemars(extend("default" = false))]
    pub protected_resource_allow_private_ip: Option<bool>,
    /// Whether the provider may be reached without TLS. For tests only.
    #[serde(rename = "insecureAllowHTTP")]
    #[schemars(extend("default" = false))]
    pub insecure_allow_http: Option<bool>,
}
