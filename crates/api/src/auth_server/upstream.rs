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
    /// What an upstream provider speaks.
    pub enum UpstreamType {
        /// OpenID Connect: its endpoints are discovered, and an ID token says who the user is.
        #[default]
        Oidc = "oidc",
        /// OAuth 2.0 alone, as GitHub and many others do: its endpoints are given by hand.
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
    /// A name for the provider, unique within the list. Other fields refer to it, and users' tokens are kept under
    /// it: after a change of name, users log in again.
    #[schemars(length(min = 1, max = 63), regex(pattern = PROVIDER_NAME))]
    pub name: String,
    /// What the provider speaks.
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
    /// The client ID that this server was given when it was registered at the provider.
    pub client_id: String,
    /// The Secret key that holds the client secret. Leave it out for a public client.
    pub client_secret_ref: Option<SecretKeyRef>,
    /// Where the provider sends users back to, as registered there. The default is the public address of the proxy
    /// with /oauth/callback.
    pub redirect_uri: Option<String>,
    /// The scopes to ask for. The default is openid and offline_access.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = list::atomic)]
    pub scopes: Vec<String>,
    /// Another way to ask the provider about the user. It has no effect: the ID token says who the user is.
    pub user_info_override: Option<UserInfo>,
    /// Further parameters of the login request, for example prompt or hd. Those that OAuth itself uses, such as
    /// scope or state, are refused.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 16))]
    pub additional_authorization_params: BTreeMap<String, String>,
    /// The claim of the ID token that identifies the user. The default is sub. Choose one that never changes and is
    /// never given to someone else, for example oid at Microsoft Entra ID.
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
        "message": "clientSecretRef cannot be set with dcrConfig: the registration brings its own secret",
    },
]))]
pub struct Oauth2Upstream {
    /// The address that users are sent to.
    #[schemars(regex(pattern = ENDPOINT_URL))]
    pub authorization_endpoint: String,
    /// The address where codes and refresh tokens are turned into access tokens.
    #[schemars(regex(pattern = ENDPOINT_URL))]
    pub token_endpoint: String,
    /// How to ask the provider who the user is. Set this or identityFromToken: without both, a user's identity is
    /// made from the access token and changes with it.
    pub user_info: Option<UserInfo>,
    /// The client ID that this server was given when it was registered at the provider.
    pub client_id: Option<String>,
    /// The Secret key that holds the client secret. Leave it out for a public client.
    pub client_secret_ref: Option<SecretKeyRef>,
    /// How this server registers itself at the provider (RFC 7591), instead of clientId and clientSecretRef.
    pub dcr_config: Option<DynamicRegistration>,
    /// Where the provider sends users back to, as registered there. The default is the public address of the proxy
    /// with /oauth/callback.
    pub redirect_uri: Option<String>,
    /// The scopes to ask for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = list::atomic)]
    pub scopes: Vec<String>,
    /// Where the tokens are in the answer of tokenEndpoint, for a provider that does not answer as OAuth prescribes.
    pub token_response_mapping: Option<TokenResponseMapping>,
    /// Where the answer of tokenEndpoint says who the user is, for a provider without a userinfo endpoint.
    pub identity_from_token: Option<IdentityFromToken>,
    /// Further parameters of the login request, for example access_type. Those that OAuth itself uses, such as
    /// scope or state, are refused.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 16))]
    pub additional_authorization_params: BTreeMap<String, String>,
    /// Whether the provider's endpoints may use http for a host other than localhost. Secrets then travel in the
    /// clear: for tests only.
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
    /// The address of the provider's metadata document, which names the registration endpoint.
    #[schemars(length(max = 2048), regex(pattern = REGISTRATION_URL))]
    pub discovery_url: Option<String>,
    /// The registration endpoint itself, for a provider that publishes no metadata.
    #[schemars(length(max = 2048), regex(pattern = REGISTRATION_URL))]
    pub registration_endpoint: Option<String>,
    /// The Secret key that holds a token that allows the registration. Leave it out when anyone may register.
    pub initial_access_token_ref: Option<SecretKeyRef>,
    /// An ID for this software, the same in every registration, for providers that want one.
    #[schemars(length(max = 255))]
    pub software_id: Option<String>,
    /// A signed statement about this software (a JWT), for providers that only register what someone vouches for.
    #[schemars(length(max = 16384))]
    pub software_statement: Option<String>,
}
