//! Token exchange (RFC 8693).

use std::sync::Arc;

use futures::FutureExt;
use skep_config::run_config::TokenExchange;

use crate::{
    SetupError,
    fetch::FetchError,
    fetched::{Fetch, Fetched},
    form::Credentials,
    limits,
    token_endpoint::{TokenEndpoint, TokenType},
};

pub(crate) const GRANT: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
/// The key of the client's own token among those of callers, which are never empty.
pub(crate) const OWN: &str = "";
const TYPES: &str = "urn:ietf:params:oauth:token-type:";

/// Why a token could not be exchanged. It names the host of the token endpoint, and contains no part of a token.
#[derive(Clone, Debug, thiserror::Error)]
#[error(transparent)]
pub struct ExchangeError(#[from] FetchError);

/// New tokens by those that they were issued for.
pub(crate) type Tokens = Fetched<String, ExchangeError>;

/// Exchanges tokens at one endpoint.
///
/// A new token is cached for the caller's token until shortly before it expires. Without an
/// `expires_in` in the response it is used once.
pub struct Exchanger {
    endpoint: Arc<TokenEndpoint>,
    audience: String,
    scope: String,
    subject_type: String,
    tokens: Tokens,
}

impl Exchanger {
    /// Exchanges tokens as configured. `secret` is that of the client.
    pub fn new(config: &TokenExchange, secret: &str) -> Result<Self, SetupError> {
        let credentials = Credentials::new(&config.client_id, secret);
        let subject_type = match config.subject_token_type.as_str() {
            "" => format!("{TYPES}access_token"),
            urn if urn.contains(':') => urn.to_owned(),
            short => format!("{TYPES}{short}"),
        };
        Ok(Self {
            endpoint: Arc::new(TokenEndpoint::new("token_url", &config.token_url, credentials)?),
            audience: config.audience.clone(),
            scope: config.scopes.join(" "),
            subject_type,
            tokens: Tokens::new(),
        })
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
        let (endpoint, token) = (self.endpoint.clone(), token.to_owned());
        let (subject_type, audience) = (self.subject_type.clone(), self.audience.clone());
        let scope = self.scope.clone();
        async move {
            let requested_type = format!("{TYPES}access_token");
            let fields = [
                ("grant_type", GRANT),
                ("subject_token", &*token),
                ("subject_token_type", &subject_type),
                ("requested_token_type", &requested_type),
                ("audience", &audience),
                ("scope", &scope),
            ];
            let issued = endpoint.request(TokenType::Bearer, &fields).await?;
            if issued.issued_type.is_none() {
                return Err(endpoint.malformed("it has no issued_token_type").into());
            }
            let until = issued.until(limits::EXCHANGE_MARGIN);
            Ok((issued.token, until))
        }
        .boxed()
    }

    /// A token of the client itself (RFC 6749, section 4.4). None if it has no credentials.
    pub async fn own_token(&self) -> Option<Result<String, ExchangeError>> {
        let fields = [("audience", self.audience.clone()), ("scope", self.scope.clone())];
        own_token(&self.endpoint, &self.tokens, fields).await
    }
}

/// A token of the client itself. None if it has no credentials.
pub(crate) async fn own_token<const N: usize>(
    endpoint: &Arc<TokenEndpoint>,
    tokens: &Tokens,
    fields: [(&'static str, String); N],
) -> Option<Result<String, ExchangeError>> {
    if !endpoint.has_credentials() {
        return None;
    }
    let endpoint = endpoint.clone();
    let fetch = || {
        async move {
            let grant = [("grant_type", "client_credentials")];
            let fields: Vec<_> =
                grant.into_iter().chain(fields.iter().map(|(name, value)| (*name, &**value))).collect();
            let issued = endpoint.request(TokenType::Bearer, &fields).await?;
            let until = issued.until(limits::EXCHANGE_MARGIN);
            Ok((issued.token, until))
        }
        .boxed()
    };
    Some(tokens.get(OWN, fetch).await)
}
