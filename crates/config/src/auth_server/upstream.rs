//! The identity providers that the authorization server sends users to.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_with::apply;

use super::{IdentityFromToken, TokenResponseMapping, UserInfo};
use crate::zero::zero;

/// An identity provider where users log in.
#[apply(_ => #[serde(default, skip_serializing_if = "zero")])]
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Upstream {
    /// Its name, under which users' tokens are kept.
    pub name: String,
    /// What it speaks.
    #[serde_with(skip_apply)]
    #[serde(rename = "type")]
    pub type_: UpstreamType,
    /// How to log in by OpenID Connect.
    pub oidc_config: Option<OidcUpstream>,
    /// How to log in by OAuth 2.0.
    pub oauth2_config: Option<Oauth2Upstream>,
}

/// What an upstream provider speaks.
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
    /// The client that the authorization server is there.
    #[serde_with(skip_apply)]
    pub client_id: String,
    /// A file with the secret of that client.
    pub client_secret_file: String,
    /// The variable with the secret of that client.
    pub client_secret_env_var: String,
    /// Where users are sent back to.
    pub redirect_uri: String,
    /// The scopes to ask for. The default is openid and offline_access.
    pub scopes: Vec<String>,
    /// Another way to ask about the user. It has no effect.
    pub userinfo_override: Option<UserInfo>,
    /// Further parameters of the login request.
    pub additional_authorization_params: BTreeMap<String, String>,
    /// The claim that says who the user is. The default is `sub`.
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
    /// The address of its login page.
    #[serde_with(skip_apply)]
    pub authorization_endpoint: String,
    /// The address where codes become tokens.
    #[serde_with(skip_apply)]
    pub token_endpoint: String,
    /// The client that the authorization server is there.
    pub client_id: String,
    /// A file with the secret of that client.
    pub client_secret_file: String,
    /// The variable with the secret of that client.
    pub client_secret_env_var: String,
    /// Where users are sent back to.
    pub redirect_uri: String,
    /// The scopes to ask for.
    pub scopes: Vec<String>,
    /// How to ask who the user is.
    pub userinfo: Option<UserInfo>,
    /// Where the tokens are in its answers.
    pub token_response_mapping: Option<TokenResponseMapping>,
    /// Where its answers say who the user is.
    pub identity_from_token: Option<IdentityFromToken>,
    /// Further parameters of the login request.
    pub additional_authorization_params: BTreeMap<String, String>,
    /// How the authorization server registers itself, if it is no client there yet.
    pub dcr_config: Option<DynamicRegistration>,
    /// Whether it may have a private address.
    pub allow_private_ips: bool,
    /// Whether it may be reached over plain HTTP.
    pub insecure_allow_http: bool,
}

/// How the authorization server registers itself at a provider (RFC 7591).
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
