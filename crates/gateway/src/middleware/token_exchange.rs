//! Token exchange: the server receives another token than the caller's.

use http::{HeaderName, HeaderValue, StatusCode, header};
use skep_auth::{Exchanger, bearer};
use skep_config::{
    env,
    headers::is_reserved,
    run_config::{self, HeaderStrategy},
};
use tracing::warn;

use super::secret;
use crate::{
    ConfigError,
    http::{ErrorResponse, response},
    message::Exchange,
};

/// Exchanges tokens, and sets the header of the new one.
pub(crate) struct TokenExchange {
    exchanger: Exchanger,
    header: HeaderName,
}

impl TokenExchange {
    pub(super) fn new(config: &run_config::TokenExchange) -> Result<Self, ConfigError> {
        let wrong = |error: &dyn std::fmt::Display| ConfigError::new(format!("tokenexchange: {error}"));
        let secret = secret(&config.client_secret, env::TOKEN_EXCHANGE_CLIENT_SECRET);
        let exchanger = Exchanger::new(config, &secret).map_err(|error| wrong(&error))?;
        let header = match config.header_strategy {
            None | Some(HeaderStrategy::Replace) => header::AUTHORIZATION,
            Some(HeaderStrategy::Custom) => {
                let name = &config.external_token_header_name;
                let named: Result<HeaderName, _> = name.parse();
                let named = named.ok().filter(|_| !is_reserved(name));
                named.ok_or_else(|| wrong(&format!("external_token_header_name: {name:?} cannot be set")))?
            }
        };
        Ok(Self { exchanger, header })
    }

    /// A request without a token passes unchanged.
    pub(super) async fn request(&self, exchange: &mut Exchange) -> Result<(), ErrorResponse> {
        let (Some(_), Ok(token)) = (&exchange.caller.identity, bearer(&exchange.headers)) else {
            return Ok(());
        };
        let exchanged = match self.exchanger.exchange(token).await {
            Ok(exchanged) => HeaderValue::from_str(&format!("Bearer {exchanged}")).ok(),
            Err(error) => {
                warn!(%error, "token exchange failed");
                None
            }
        };
        let Some(mut exchanged) = exchanged else {
            return Err(Box::new(response::text(StatusCode::UNAUTHORIZED, "Token exchange failed\n")));
        };
        exchanged.set_sensitive(true);
        let replaced = exchange.headers.insert(self.header.clone(), exchanged);
        if self.header == header::AUTHORIZATION {
            exchange.caller.authorization = replaced;
        }
        Ok(())
    }
}
