//! Token exchange (RFC 8693).

use std::time::{Duration, Instant};

use http::Uri;
use serde_json::Value;
use skep_config::run_config::TokenExchange;

use crate::{
    SetupError,
    cache::Cache,
    fetch::{FetchError, Fetcher, Reach},
    form::{Credentials, post},
    limits,
};

const GRANT: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
/// The key of the client's own token among those of callers, which are never empty.
const OWN: &str = "";
const TYPES: &str = "urn:ietf:params:oauth:token-type:";

/// Why a token could not be exchanged. It names the host of the token endpoint, and contains no part of a token.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct ExchangeError(FetchError);

/// Exchanges tokens at one endpoint.
///
/// A new token is cached for the caller's token until shortly before it expires. Without an
/// `expires_in` in the response it is used once.
pub struct Exchanger {
    fetcher: Fetcher,
    endpoint: Uri,
    credentials: Option<Credentials>,
    audience: String,
    scope: String,
    subject_type: String,
    tokens: Cache<String>,
}

impl Exchanger {
    /// Exchanges tokens as configured. `secret` is that of the client.
    pub fn new(config: &TokenExchange, secret: &str) -> Result<Self, SetupError> {
        // Only the administrator of the proxy sets the endpoint, so it may be within the cluster.
        let fetcher = Fetcher::new(Reach { private: true, plain: true }, None)?;
        let subject_type = match config.subject_token_type.as_str() {
            "" => format!("{TYPES}access_token"),
            urn if urn.contains(':') => urn.to_owned(),
            short => format!("{TYPES}{short}"),
        };
        Ok(Self {
            endpoint: fetcher.address("token_url", &config.token_url)?,
            fetcher,
            credentials: Credentials::new(&config.client_id, secret),
            audience: config.audience.clone(),
            scope: config.scopes.join(" "),
            subject_type,
            tokens: Cache::new(),
        })
    }

    /// The new token for a caller's token.
    pub async fn exchange(&self, token: &str) -> Result<String, ExchangeError> {
        if let Some(known) = self.tokens.get(token, Instant::now()) {
            return Ok(known);
        }
        let requested_type = format!("{TYPES}access_token");
        let fields = [
            ("grant_type", GRANT),
            ("subject_token", token),
            ("subject_token_type", &self.subject_type),
            ("requested_token_type", &requested_type),
            ("audience", &self.audience),
            ("scope", &self.scope),
        ];
        self.cached(token, &fields).await
    }

    /// A token of the client itself (RFC 6749, section 4.4). None if it has no credentials.
    pub async fn own_token(&self) -> Option<Result<String, ExchangeError>> {
        self.credentials.as_ref()?;
        if let Some(known) = self.tokens.get(OWN, Instant::now()) {
            return Some(Ok(known));
        }
        let fields =
            [("grant_type", "client_credentials"), ("audience", &self.audience), ("scope", &self.scope)];
        Some(self.cached(OWN, &fields).await)
    }

    /// The token that this form requests, which is cached for this key.
    async fn cached(&self, key: &str, fields: &[(&str, &str)]) -> Result<String, ExchangeError> {
        let sent = Instant::now();
        let (token, life) = self.request_token(fields).await.map_err(ExchangeError)?;
        let until = sent + life.saturating_sub(limits::EXCHANGE_MARGIN);
        self.tokens.put(key, token.clone(), until, Instant::now());
        Ok(token)
    }

    async fn request_token(&self, fields: &[(&str, &str)]) -> Result<(String, Duration), FetchError> {
        let is_exchange = fields.contains(&("grant_type", GRANT));
        let fields = fields.iter().copied();
        let fields: Vec<_> = fields.filter(|(_, value)| !value.is_empty()).collect();
        let mut request = post(&self.endpoint, &fields);
        if let Some(credentials) = &self.credentials {
            credentials.sign(&mut request);
        }
        let (status, answer) = self.fetcher.send(request, limits::EXCHANGE, limits::EXCHANGE_TIME).await?;
        if !status.is_success() {
            return Err(FetchError::status(&self.endpoint, status));
        }
        let malformed = |what| FetchError::answer(&self.endpoint, what);
        let answer = answer.ok_or_else(|| malformed("it is not a JSON object"))?;
        let text = |key| answer.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
        let exchanged = text("access_token").ok_or_else(|| malformed("it has no access_token"))?;
        text("token_type").ok_or_else(|| malformed("it has no token_type"))?;
        if is_exchange {
            text("issued_token_type").ok_or_else(|| malformed("it has no issued_token_type"))?;
        }
        let life = answer.get("expires_in").and_then(Value::as_u64).unwrap_or_default();
        // A bound, so that the sum of times cannot overflow.
        Ok((exchanged.to_owned(), Duration::from_secs(life.min(24 * 60 * 60))))
    }
}
