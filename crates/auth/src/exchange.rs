//! Another token in place of a caller's (RFC 8693).

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
const TYPES: &str = "urn:ietf:params:oauth:token-type:";

/// Why there is no other token. It names the host of the token endpoint, and nothing of any token.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct ExchangeError(FetchError);

/// Exchanges tokens at one endpoint.
///
/// A token that was got is used again for the same caller's token, until shortly before it ends. Without an
/// `expires_in` in the answer it is used once.
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
    /// Exchanges tokens as the configuration says. `secret` is that of the client which does it.
    pub fn new(config: &TokenExchange, secret: &str) -> Result<Self, SetupError> {
        // The endpoint comes from whoever configures the proxy, and from nowhere else: it may be within the cluster.
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

    /// The token that stands in for this one.
    pub async fn exchanged(&self, token: &str) -> Result<String, ExchangeError> {
        if let Some(known) = self.tokens.get(token, Instant::now()) {
            return Ok(known);
        }
        let asked = Instant::now();
        let (exchanged, life) = self.asked(token).await.map_err(ExchangeError)?;
        let until = asked + life.saturating_sub(limits::EXCHANGE_MARGIN);
        self.tokens.put(token, exchanged.clone(), until, Instant::now());
        Ok(exchanged)
    }

    async fn asked(&self, token: &str) -> Result<(String, Duration), FetchError> {
        let requested_type = format!("{TYPES}access_token");
        let fields = [
            ("grant_type", GRANT),
            ("subject_token", token),
            ("subject_token_type", &self.subject_type),
            ("requested_token_type", &requested_type),
            ("audience", &self.audience),
            ("scope", &self.scope),
        ];
        let fields: Vec<_> = fields.into_iter().filter(|(_, value)| !value.is_empty()).collect();
        let mut request = post(&self.endpoint, &fields);
        if let Some(credentials) = &self.credentials {
            credentials.sign(&mut request);
        }
        let (status, answer) = self.fetcher.send(request, limits::EXCHANGE, limits::EXCHANGE_TIME).await?;
        if !status.is_success() {
            return Err(FetchError::status(&self.endpoint, status));
        }
        let wrong = |what| FetchError::answer(&self.endpoint, what);
        let answer = answer.ok_or_else(|| wrong("it is not a JSON object"))?;
        let text = |key| answer.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
        let exchanged = text("access_token").ok_or_else(|| wrong("it has no access_token"))?;
        text("token_type").ok_or_else(|| wrong("it has no token_type"))?;
        text("issued_token_type").ok_or_else(|| wrong("it has no issued_token_type"))?;
        let life = answer.get("expires_in").and_then(Value::as_u64).unwrap_or_default();
        // Nobody needs to know it for longer, and no sum of times can be too large.
        Ok((exchanged.to_owned(), Duration::from_secs(life.min(24 * 60 * 60))))
    }
}
