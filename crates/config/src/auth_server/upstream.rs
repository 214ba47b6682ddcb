//! The upstream identity providers of the authorization server.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_with::apply;

use super::{IdentityFromToken, TokenResponseMapping, UserInfo};
use crate::zero::zero;

/// An identity provider where users log in.
#[apply(_ => #[serde(default, skip_serializing_if = "zero")])]
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Upstream {
    /// Its name, under which users' tokens are stored.
    pub name: String,
    /// Its protocol.
    #[serde_with(skip_apply)]
    #[serde(rename = "type")]
    pub type_: UpstreamType,
    /// The settings for OpenID Connect.
    pub oidc_config: Option<OidcUpstream>,
    /// The settings for OAuth 2.0.
    pub oauth2_config: Option<Oauth2Upstream>,
}

/// The protocol of an upstream provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum UpstreamType {
    /// OpenID Connect.
    Oidc,
    /// OAuth 2.0 alone.
    Oauth2,
}

/// A provider of OpenID Connect.
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct OidcUpstream {
    /// Its issuer.
    #[serde_with(skip_apply)]
    pub issuer_url: String,
    /// The authorization server's client id at the provider.
    #[serde_with(skip_apply)]
    pub client_id: String,
    /// A file with the secret of that client.
    pub client_secret_file: String,
    /// The variable with the secret of that client.
    pub client_secret_env_var: String,
    /// The redirect URI.
    pub redirect_uri: String,
    /// The scopes to request. The default is openid and offline_access.
    pub scopes: Vec<String>,
    /// Another userinfo endpoint. It has no effect.
    pub userinfo_override: Option<UserInfo>,
    /// Further parameters of the authorization request.
    pub additional_authorization_params: BTreeMap<String, String>,
    /// The claim with the user's subject. The default is `sub`.
    pub subject_claim: String,
    /// Whether it may have a private address.
    pub allow_private_ips: bool,
    /// Whether it may be reached over plain HTTP.
    pub insecure_allow_http: bool,
}

/// A provider of plain OAuth 2.0.
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct Oauth2Upstream {
    /// Its authorization endpoint.
    #[serde_with(skip_apply)]
    pub authorization_endpoint: String,
    /// Its token endpoint.
    #[serde_with(skip_apply)]
    pub token_endpoint: String,
    /// The authorization server's client id at the provider.
    pub client_id: String,
    /// A file with the secret of that client.
    pub client_secret_file: String,
    /// The variable with the secret of that client.
    pub client_secret_env_var: String,
    /// The redirect URI.
    pub redirect_uri: String,
    /// The scopes to request.
    pub scopes: Vec<String>,
    /// Its userinfo endpoint.
    pub userinfo: Option<UserInfo>,
    /// The paths of tokens in its responses.
    pub token_response_mapping: Option<TokenResponseMapping>,
    /// The paths of the user's identity in its token responses.
    pub identity_from_token: Option<IdentityFromToken>,
    /// Further parameters of the authorization request.
    pub additional_authorization_params: BTreeMap<String, String>,
    /// Dynamic registration, if the authorization server has no client id there.
    pub dcr_config: Option<DynamicRegistration>,
    /// Whether it may have a private address.
    pub allow_private_ips: bool,
    /// Whether it may be reached over plain HTTP.
    pub insecure_allow_http: bool,
}

/// Dynamic client registration at a provider (RFC 7591).
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct DynamicRegistration {
    /// The address of the document that names the registration endpoint.
    pub discovery_url: String,
    /// The registration endpoint itself.
    pub registration_endpoint: String,
    /// A file with a token that allows the registration.
    pub initial_access_token_file: String,
    /// The variable with a token that allows the registration.
    pub initial_access_token_env_var: String,
    /// An ID for this software.
    pub software_id: String,
    /// A signed statement about this software.
    pub software_statement: String,
}
