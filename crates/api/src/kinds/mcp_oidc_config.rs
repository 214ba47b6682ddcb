//! MCPOIDCConfig: whose tokens are accepted.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::{
    config_status::ConfigStatus,
    enums::text_enum,
    refs::{CaBundleRef, SecretKeyRef},
};

/// An MCPOIDCConfig says whose access tokens are accepted, and how they are checked. Servers share it by
/// oidcConfigRef, where each names the audience that is its own.
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
    /// How tokens of the cluster's own service accounts are checked. Set it with type kubernetesServiceAccount.
    pub kubernetes_service_account: Option<KubernetesServiceAccountOidc>,
    /// The identity provider, written here. Set it with type inline.
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

/// How tokens of the cluster's service accounts are checked.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KubernetesServiceAccountOidc {
    /// Kept for manifests that set it. Which accounts may call is for authorization policies to say.
    pub service_account: Option<String>,
    /// Kept for manifests that set it. Which accounts may call is for authorization policies to say.
    pub namespace: Option<String>,
    /// The issuer that tokens must name. Set it where the cluster's issuer is not the usual one.
    #[schemars(extend("default" = KubernetesServiceAccountOidc::DEFAULT_ISSUER))]
    pub issuer: Option<String>,
    /// Where the issuer's keys are. Without it, the issuer is asked.
    pub jwks_url: Option<String>,
    /// Where tokens that are not JWTs are looked up (RFC 7662).
    pub introspection_url: Option<String>,
    /// Whether the proxy asks the cluster for the keys with its own service account and the cluster's certificates.
    /// The default is true.
    pub use_cluster_auth: Option<bool>,
}

impl KubernetesServiceAccountOidc {
    const DEFAULT_ISSUER: &str = "https://kubernetes.default.svc";

    /// The issuer that tokens must name.
    pub fn issuer(&self) -> &str {
        self.issuer.as_deref().unwrap_or(Self::DEFAULT_ISSUER)
    }

    /// Whether the proxy asks the cluster for the keys as itself.
    pub fn use_cluster_auth(&self) -> bool {
        self.use_cluster_auth.unwrap_or(true)
    }
}

/// An identity provider.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InlineOidc {
    /// The issuer that tokens must name, as a URL. Its OpenID configuration is found there.
    pub issuer: String,
    /// Where the issuer's keys are. Without it, the issuer's OpenID configuration says.
    pub jwks_url: Option<String>,
    /// Where tokens that are not JWTs are looked up (RFC 7662).
    pub introspection_url: Option<String>,
    /// The client that the proxy is to the provider, for introspection.
    pub client_id: Option<String>,
    /// The Secret key that holds the client's secret.
    pub client_secret_ref: Option<SecretKeyRef>,
    /// The certificates to trust when the provider's own is signed by a private authority.
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
    /// Whether the provider may be reached without TLS. Only for trying things out.
    #[serde(rename = "insecureAllowHTTP")]
    #[schemars(extend("default" = false))]
    pub insecure_allow_http: Option<bool>,
}
