//! The identity providers that the authorization server sends users to.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::{IdentityFromToken, PROVIDER_NAME, TokenResponseMapping, UserInfo};
use crate::{enums::text_enum, list, refs::SecretKeyRef};

const ENDPOINT_URL: &str = "^https?://.*$";
const REGISTRATION_URL: &str = r"^https://[^\s?#]+[^/\s?#]$";

text_enum! {
    /// The protocol of an upstream provider.
    pub enum UpstreamType {
        /// OpenID Connect: its endpoints are discovered, and an ID token identifies the user.
        #[default]
        Oidc = "oidc",
        /// OAuth 2.0 without OpenID Connect, as with GitHub and many others: its endpoints are configured explicitly.
        Oauth2 = "oauth2",
    }
}

/// An identity provider where users log in.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "self.type == 'oidc' ? (has(self.oidcConfig) && !has(self.oauth2Config)) : self.type == 'oauth2' ? (has(self.oauth2Config) && !has(self.oidcConfig)) : false",
    "message": "set oidcConfig with type oidc, or oauth2Config with type oauth2, and leave the other one out",
}]))]
pub struct UpstreamProvider {
    /// A name for the provider, unique within the list. Other fields refer to it, and users' tokens are stored under
    /// it: after a rename, users log in again.
    #[schemars(length(min = 1, max = 63), regex(pattern = PROVIDER_NAME))]
    pub name: String,
    /// The protocol of the provider.
    #[serde(rename = "type")]
    pub type_: UpstreamType,
    /// How to log in by OpenID Connect. Set it with type oidc.
    pub oidc_config: Option<OidcUpstream>,
    /// How to log in by OAuth 2.0. Set it with type oauth2.
    pub oauth2_config: Option<Oauth2Upstream>,
}

/// A provider of OpenID Connect.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OidcUpstream {
    /// The provider's issuer. Its discovery document is fetched from there and must name the same issuer.
    #[schemars(regex(pattern = "^https://.*$"))]
    pub issuer_url: String,
    /// The client ID of this server, as registered at the provider.
    pub client_id: String,
    /// The Secret key that holds the client secret. Leave it out for a public client.
    pub client_secret_ref: Option<SecretKeyRef>,
    /// The redirect URI, as registered at the provider. The default is the public URL of the proxy with
    /// /oauth/callback.
    pub redirect_uri: Option<String>,
    /// The scopes to request. The default is openid and offline_access.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = list::atomic)]
    pub scopes: Vec<String>,
    /// A userinfo endpoint. It has no effect: the ID token identifies the user.
    pub user_info_override: Option<UserInfo>,
    /// Further parameters of the login request, for example prompt or hd. Those that OAuth itself uses, such as scope
    /// or state, are rejected.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 16))]
    pub additional_authorization_params: BTreeMap<String, String>,
    /// The claim of the ID token that identifies the user. The default is sub. Choose one that never changes and is
    /// never reassigned, for example oid at Microsoft Entra ID.
    #[schemars(length(max = 128), regex(pattern = "^([a-zA-Z_][a-zA-Z0-9_]*)?$"))]
    pub subject_claim: Option<String>,
}

/// A provider of plain OAuth 2.0.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {
        "rule": "(has(self.clientId) && size(self.clientId) > 0) ? !has(self.dcrConfig) : has(self.dcrConfig)",
        "message": "set either clientId, for a client that is registered already, or dcrConfig, to register one",
    },
    {
        "rule": "!(has(self.dcrConfig) && has(self.clientSecretRef))",
        "message": "clientSecretRef cannot be set with dcrConfig: the registration returns its own secret",
    },
]))]
pub struct Oauth2Upstream {
    /// The URL of the authorization endpoint, which users are redirected to.
    #[schemars(regex(pattern = ENDPOINT_URL))]
    pub authorization_endpoint: String,
    /// The URL of the token endpoint.
    #[schemars(regex(pattern = ENDPOINT_URL))]
    pub token_endpoint: String,
    /// The provider's userinfo endpoint. Set this or identityFromToken: without both, a user's identity is derived
    /// from the access token and changes with it.
    pub user_info: Option<UserInfo>,
    /// The client ID of this server, as registered at the provider.
    pub client_id: Option<String>,
    /// The Secret key that holds the client secret. Leave it out for a public client.
    pub client_secret_ref: Option<SecretKeyRef>,
    /// How this server registers itself at the provider (RFC 7591), instead of clientId and clientSecretRef.
    pub dcr_config: Option<DynamicRegistration>,
    /// The redirect URI, as registered at the provider. The default is the public URL of the proxy with
    /// /oauth/callback.
    pub redirect_uri: Option<String>,
    /// The scopes to request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = list::atomic)]
    pub scopes: Vec<String>,
    /// Where the tokens are in the response of tokenEndpoint, for a provider whose response deviates from OAuth.
    pub token_response_mapping: Option<TokenResponseMapping>,
    /// Where the response of tokenEndpoint identifies the user, for a provider without a userinfo endpoint.
    pub identity_from_token: Option<IdentityFromToken>,
    /// Further parameters of the login request, for example access_type. Those that OAuth itself uses, such as scope
    /// or state, are rejected.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 16))]
    pub additional_authorization_params: BTreeMap<String, String>,
    /// Whether the provider's endpoints may use http for a host other than localhost. Secrets are then sent
    /// unencrypted: for tests only.
    #[serde(rename = "insecureAllowHTTP")]
    pub insecure_allow_http: Option<bool>,
    /// Whether the provider's endpoints may have private addresses. Set it for a provider within the cluster.
    #[serde(rename = "allowPrivateIPs")]
    pub allow_private_ips: Option<bool>,
}

/// How the server registers itself at an upstream provider (RFC 7591).
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "has(self.discoveryUrl) != has(self.registrationEndpoint)",
    "message": "set either discoveryUrl or registrationEndpoint, not both",
}]))]
pub struct DynamicRegistration {
    /// The URL of the provider's metadata document, which names the registration endpoint.
    #[schemars(length(max = 2048), regex(pattern = REGISTRATION_URL))]
    pub discovery_url: Option<String>,
    /// The registration endpoint itself, for a provider that publishes no metadata.
    #[schemars(length(max = 2048), regex(pattern = REGISTRATION_URL))]
    pub registration_endpoint: Option<String>,
    /// The Secret key that holds the initial access token for the registration. Leave it out when the provider
    /// requires none.
    pub initial_access_token_ref: Option<SecretKeyRef>,
    /// An ID for this software, the same in every registration, for providers that require one.
    #[schemars(length(max = 255))]
    pub software_id: Option<String>,
    /// A signed statement about this software (a JWT), for providers that require a software statement.
    #[schemars(length(max = 16384))]
    pub software_statement: Option<String>,
}
