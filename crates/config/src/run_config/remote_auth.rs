//! Authentication of a proxy to a remote server.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_with::apply;

use crate::zero::zero;

/// How a proxy authenticates to a remote server. Logins in a browser are not supported: a pod has none.
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct RemoteAuth {
    /// The client.
    pub client_id: String,
    /// The secret of the client, as `name,target=client_secret`.
    pub client_secret: String,
    /// A file with the secret of the client.
    pub client_secret_file: String,
    /// The scopes to request.
    pub scopes: Vec<String>,
    /// Whether the address of the login page is printed instead of opened in a browser.
    pub skip_browser: bool,
    /// The timeout of a login, in nanoseconds.
    pub timeout: u64,
    /// The port of the redirect URI.
    pub callback_port: u16,
    /// Whether PKCE is used.
    #[serde_with(skip_apply)]
    pub use_pkce: bool,
    /// The resource to request (RFC 8707).
    pub resource: String,
    /// The issuer of tokens.
    pub issuer: String,
    /// The authorization endpoint.
    pub authorize_url: String,
    /// The token endpoint.
    pub token_url: String,
    /// Further parameters of the authorization request.
    pub oauth_params: BTreeMap<String, String>,
    /// The name of the parameter for scopes. The default is `scope`.
    pub scope_param_name: String,
    /// A bearer token, as `name,target=bearer_token`.
    pub bearer_token: String,
    /// A file with a bearer token.
    pub bearer_token_file: String,
    /// When a token from an earlier login expires. The operator does not set it.
    #[serde_with(skip_apply)]
    pub cached_token_expiry: Time,
    /// When a client secret from an earlier registration expires. The operator does not set it.
    #[serde_with(skip_apply)]
    pub cached_secret_expiry: Time,
}

impl RemoteAuth {
    /// Authentication by the bearer token in the secret of that name.
    pub fn with_bearer_token(secret: &str) -> Self {
        Self { bearer_token: format!("{secret},target=bearer_token"), ..Self::default() }
    }
}

/// A time (RFC 3339). The default is Go's zero, in the year 1.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(transparent)]
pub struct Time(pub String);

impl Default for Time {
    fn default() -> Self {
        Self("0001-01-01T00:00:00Z".into())
    }
}
