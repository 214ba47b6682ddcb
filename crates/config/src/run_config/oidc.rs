//! How callers' tokens are checked.

use serde::{Deserialize, Serialize};

use crate::zero::null;

/// How callers' tokens are checked. Unlike the rest of the file, its keys are capitalised and never left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Oidc {
    /// Who must have issued the token.
    pub issuer: String,
    /// Whom the token must be for.
    pub audience: String,
    /// Where the issuer's keys are. Without it, they are discovered.
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
    /// Where opaque tokens are introspected.
    #[serde(rename = "IntrospectionURL")]
    pub introspection_url: String,
    /// The address that clients know the proxy by (RFC 9728).
    #[serde(rename = "ResourceURL")]
    pub resource_url: String,
    /// The scopes that clients are told to ask for.
    #[serde(with = "null")]
    pub scopes: Vec<String>,
}
