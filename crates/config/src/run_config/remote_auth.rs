//! How a proxy authenticates itself to a remote server.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_with::apply;

use crate::zero::zero;

/// How a proxy authenticates itself to a remote server. What people click through in a browser is not here: a pod has
/// none.
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
    /// The scopes to ask for.
    pub scopes: Vec<String>,
    /// Whether the login page is only printed, not opened.
    pub skip_browser: bool,
    /// How long a login may take, in nanoseconds.
    pub timeout: u64,
    /// The port that a login comes back to.
    pub callback_port: u16,
    /// Whether codes are protected by PKCE.
    #[serde_with(skip_apply)]
    pub use_pkce: bool,
    /// The resource to ask for (RFC 8707).
    pub resource: String,
    /// The issuer of tokens.
    pub issuer: String,
    /// The address of the login page.
    pub authorize_url: String,
    /// The address where codes become tokens.
    pub token_url: String,
    /// Further parameters of the login request.
    pub oauth_params: BTreeMap<String, String>,
    /// What the parameter for scopes is called. The default is `scope`.
    pub scope_param_name: String,
    /// A token that is sent as it is, as `name,target=bearer_token`.
    pub bearer_token: String,
    /// A file with a token that is sent as it is.
    pub bearer_token_file: String,
    /// When a token from an earlier login ends. Files from an operator hold none.
    #[serde_with(skip_apply)]
    pub cached_token_expiry: Time,
    /// When a client secret from an earlier registration ends. Files from an operator hold none.
    #[serde_with(skip_apply)]
    pub cached_secret_expiry: Time,
}

impl RemoteAuth {
    /// Authentication by a token that is in the secret of that name.
    pub fn with_bearer_token(secret: &str) -> Self {
        Self { bearer_token: format!("{secret},target=bearer_token"), ..Self::default() }
    }
}

/// A time (RFC 3339). That of nothing is Go's zero, in the year 1.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(transparent)]
pub struct Time(pub String);

impl Default for Time {
    fn default() -> Self {
        Self("0001-01-01T00:00:00Z".into())
    }
}
