//! Authentication of a proxy to a remote server.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_with::apply;

use crate::zero::zero;

/// How a proxy authenticates to a remote server. Logins in a browser are not supported: a pod has none. Keys may be those of
/// older files, such as `BearerToken`.
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct RemoteAuth {
    /// The client.
    #[serde(alias = "ClientID")]
    pub client_id: String,
    /// The secret of the client, as `name,target=client_secret`.
    #[serde(alias = "ClientSecret")]
    pub client_secret: String,
    /// A file with the secret of the client.
    #[serde(alias = "ClientSecretFile")]
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
    #[serde(alias = "AuthorizeURL")]
    pub authorize_url: String,
    /// The token endpoint.
    #[serde(alias = "TokenURL")]
    pub token_url: String,
    /// Further parameters of the authorization request.
    pub oauth_params: BTreeMap<String, String>,
    /// The name of the parameter for scopes. The default is `scope`.
    pub scope_param_name: String,
    /// A bearer token, as `name,target=bearer_token`.
    #[serde(alias = "BearerToken")]
    pub bearer_token: String,
    /// A file with a bearer token.
    #[serde(alias = "BearerTokenFile")]
    pub bearer_token_file: String,
    /// The secret with a refresh token from an earlier login. The operator does not set it.
    pub cached_refresh_token_ref: String,
    /// The client that an earlier login has registered. The operator does not set it.
    pub cached_client_id: String,
    /// When a token from an earlier login expires. The operator does not set it.
    #[serde_with(skip_apply)]
    pub cached_token_expiry: Time,
    /// When a client secret from an earlier registration expires. The operator does not set it.
    #[serde_with(skip_apply)]
    pub cached_secret_expiry: Time,
}

impl RemoteAuth {
    /// The first field that only a login by OAuth has, if one is set.
    pub fn login_field(&self) -> Option<&'static str> {
        let fields = [
            ("client_id", &self.client_id),
            ("client_secret", &self.client_secret),
            ("client_secret_file", &self.client_secret_file),
            ("issuer", &self.issuer),
            ("authorize_url", &self.authorize_url),
            ("token_url", &self.token_url),
            ("cached_refresh_token_ref", &self.cached_refresh_token_ref),
            ("cached_client_id", &self.cached_client_id),
        ];
        fields.into_iter().find(|(_, value)| !value.is_empty()).map(|(name, _)| name)
    }

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
