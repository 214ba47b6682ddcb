//! The on-behalf-of flow of the Microsoft identity platform: a token for another API, on behalf of the caller.

use std::{sync::Arc, time::Duration};

use futures::FutureExt;

use crate::{
    SetupError,
    exchange::{ExchangeError, Tokens},
    fetched::Fetch,
    token_endpoint::{TokenEndpoint, TokenType},
};

pub(crate) const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";

/// How tokens are obtained.
#[derive(Clone, Default)]
pub struct OnBehalfOfConfig {
    /// The token endpoint of the tenant.
    pub token_url: String,
    /// The application that this server is.
    pub client_id: String,
    /// Its secret.
    pub client_secret: String,
    /// The scopes of the new token, separated by spaces.
    pub scope: String,
    /// How long before it expires a token is no longer used.
    pub margin: Duration,
}

/// Obtains tokens on behalf of callers, and caches each for the caller's token.
pub struct OnBehalfOf {
    endpoint: Arc<TokenEndpoint>,
    config: Arc<OnBehalfOfConfig>,
    tokens: Tokens,
}

impl OnBehalfOf {
    /// Obtains tokens as configured.
    pub fn new(config: OnBehalfOfConfig) -> Result<Self, SetupError> {
        // The platform documents that client and secret are fields of the form.
        let endpoint = TokenEndpoint::encrypted("tokenUrl", &config.token_url, None)?;
        Ok(Self { endpoint: Arc::new(endpoint), config: Arc::new(config), tokens: Tokens::new() })
    }

    /// Forgets the new token for a caller's token, which was rejected. Returns whether another one may be accepted.
    pub fn forget(&self, token: &str, rejected: &str) -> bool {
        self.tokens.forget(token, &rejected.to_owned())
    }

    /// The new token for a caller's token.
    pub async fn exchange(&self, token: &str) -> Result<String, ExchangeError> {
        self.tokens.get(token, || self.exchanged(token)).await
    }

    fn exchanged(&self, token: &str) -> Fetch<String, ExchangeError> {
        let (endpoint, config, token) = (self.endpoint.clone(), self.config.clone(), token.to_owned());
        async move {
            let fields = [
                ("grant_type", JWT_BEARER),
                ("client_id", &*config.client_id),
                ("client_secret", &config.client_secret),
                ("assertion", &token),
                ("scope", &config.scope),
                ("requested_token_use", "on_behalf_of"),
            ];
            let issued = endpoint.request(TokenType::Bearer, &fields).await?;
            let until = issued.until(config.margin);
            Ok((issued.token, until))
        }
        .boxed()
    }
}
