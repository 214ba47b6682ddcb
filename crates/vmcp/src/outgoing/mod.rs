//! How the virtual server authenticates to its backends.

mod fixed_header;
mod token_exchange;
mod upstream_token;

use std::sync::Arc;

use http::{HeaderMap, HeaderName, HeaderValue, header};
use skep_api::vmcp::BackendAuthStrategy;
use skep_auth::Exchanger;
use skep_config::FieldError;
use skep_gateway::AuthorizationServer;
use tracing::warn;

use crate::backend::{BackendError, Caller};
use upstream_token::UpstreamToken;

/// The credentials for a backend.
pub(crate) enum Credentials {
    /// None are needed.
    Unauthenticated,
    /// A header with a fixed value.
    Header(HeaderName, HeaderValue),
    /// The caller's token, exchanged for one that the backend accepts.
    TokenExchange(Box<Exchanger>),
    /// The caller's token of an identity provider.
    UpstreamToken(UpstreamToken),
}

impl Credentials {
    /// The credentials of this strategy.
    pub(crate) fn new(
        strategy: Option<&BackendAuthStrategy>,
        server: Option<&Arc<dyn AuthorizationServer>>,
    ) -> Result<Self, Vec<FieldError>> {
        let Some(strategy) = strategy else { return Ok(Self::Unauthenticated) };
        let credentials = match &*strategy.type_ {
            BackendAuthStrategy::UNAUTHENTICATED => Ok(Self::Unauthenticated),
            "header_injection" => fixed_header::credentials(strategy),
            "token_exchange" => token_exchange::credentials(strategy),
            "upstream_inject" => UpstreamToken::new(strategy, server).map(Self::UpstreamToken),
            other => Err(FieldError::new("type", format!("{other:?} is not supported by this version"))),
        };
        credentials.map_err(|error| vec![error])
    }

    /// The name of the strategy, for status pages.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Unauthenticated => BackendAuthStrategy::UNAUTHENTICATED,
            Self::Header(..) => "header_injection",
            Self::TokenExchange(_) => "token_exchange",
            Self::UpstreamToken(_) => "upstream_inject",
        }
    }

    /// Whether what a backend offers may depend on the caller.
    pub(crate) fn depend_on_caller(&self) -> bool {
        matches!(self, Self::TokenExchange(_) | Self::UpstreamToken(_))
    }

    /// Adds the credentials to the headers of a request.
    pub(crate) async fn apply(&self, headers: &mut HeaderMap, caller: &Caller) -> Result<(), BackendError> {
        match self {
            Self::Unauthenticated => {}
            Self::Header(name, value) => {
                headers.insert(name, value.clone());
            }
            Self::TokenExchange(exchanger) => {
                if let Some(token) = exchanged(exchanger, caller).await? {
                    headers.insert(header::AUTHORIZATION, bearer(&token)?);
                }
            }
            Self::UpstreamToken(upstream) => {
                if let Some(token) = upstream.of(caller).await? {
                    headers.insert(header::AUTHORIZATION, bearer(&token)?);
                }
            }
        }
        Ok(())
    }
}

/// The token for a caller, or of the virtual server itself, which may have none.
async fn exchanged(exchanger: &Exchanger, caller: &Caller) -> Result<Option<String>, BackendError> {
    let token = match (&caller.identity, &caller.token) {
        (None, _) => match exchanger.own_token().await {
            None => return Ok(None),
            Some(token) => token,
        },
        (Some(_), Some(token)) => exchanger.exchange(token).await,
        (Some(_), None) => return Err(BackendError::NoCredentials("the caller has no token".into())),
    };
    token.map(|token| Some(token.to_string())).map_err(|error| {
        warn!(%error, "token exchange failed");
        BackendError::NoCredentials("the token of the caller could not be exchanged".into())
    })
}

fn bearer(token: &str) -> Result<HeaderValue, BackendError> {
    let unusable = |_| BackendError::NoCredentials("the new token is not a valid header".into());
    let mut value = HeaderValue::try_from(format!("Bearer {token}")).map_err(unusable)?;
    value.set_sensitive(true);
    Ok(value)
}
