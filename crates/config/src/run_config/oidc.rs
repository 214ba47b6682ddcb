//! Validation of callers' tokens.

use serde::{Deserialize, Serialize};

use crate::zero::null;

/// How callers' tokens are validated. Unlike the rest of the file, its keys are capitalised and never omitted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Oidc {
    /// The issuer that a token must have.
    pub issuer: String,
    /// The audience that a token must have.
    pub audience: String,
    /// The address of the issuer's keys. Without it, they are discovered.
    #[serde(rename = "JWKSURL")]
    pub jwks_url: String,
    /// The client that introspects opaque tokens.
    #[serde(rename = "ClientID")]
    pub client_id: String,
    /// The secret of that client. It is empty in files: see [`OIDC_CLIENT_SECRET`](crate::env::OIDC_CLIENT_SECRET).
    pub client_secret: String,
    /// A file with the certificate authority of the issuer.
    #[serde(rename = "CACertPath")]
    pub ca_cert_path: String,
    /// A file with a token to send to the issuer.
    pub auth_token_file: String,
    /// Whether the issuer may have a private address.
    #[serde(rename = "AllowPrivateIP")]
    pub allow_private_ip: bool,
    /// Whether the issuer may be reached over plain HTTP.
    #[serde(rename = "InsecureAllowHTTP")]
    pub insecure_allow_http: bool,
    /// The introspection endpoint for opaque tokens.
    #[serde(rename = "IntrospectionURL")]
    pub introspection_url: String,
    /// The address of the proxy for clients (RFC 9728).
    #[serde(rename = "ResourceURL")]
    pub resource_url: String,
    /// The scopes that clients should request.
    #[serde(with = "null")]
    pub scopes: Vec<String>,
}

impl Oidc {
    /// Whether the tokens of this issuer are the ones that are accepted.
    pub fn accepts_issuer(&self, issuer: &str) -> bool {
        bare_issuer(issuer) == bare_issuer(&self.issuer)
    }
}

/// An issuer without a trailing slash. It is the same issuer with and without it.
pub fn bare_issuer(issuer: &str) -> &str {
    issuer.trim().trim_end_matches('/')
}
