//! The server receives the caller's token of an identity provider, in place of the one for the proxy.

use http::{HeaderName, HeaderValue, header};
use skep_config::{
    headers::is_reserved,
    run_config::{self, HeaderStrategy, Oidc},
};

use super::{ChainContext, provider_token::ProviderToken};
use crate::{ConfigError, ProviderTokenError, http::ErrorResponse, message::Exchange};

/// Replaces tokens.
pub(crate) struct UpstreamSwap {
    tokens: ProviderToken,
    header: HeaderName,
}

impl UpstreamSwap {
    /// `oidc` is how callers are authenticated.
    pub(super) fn new(
        config: &run_config::UpstreamSwap,
        oidc: Option<&Oidc>,
        context: &ChainContext<'_>,
    ) -> Result<Self, ConfigError> {
        let header = match config.header_strategy {
            None | Some(HeaderStrategy::Replace) => header::AUTHORIZATION,
            Some(HeaderStrategy::Custom) => {
                let name = &config.custom_header_name;
                let named = name.parse().ok().filter(|_| !is_reserved(name));
                let message = format!("upstreamswap: custom_header_name: {name:?} cannot be set");
                named.ok_or_else(|| ConfigError::new(message))?
            }
        };
        let field = "upstreamswap: provider_name";
        Ok(Self { tokens: ProviderToken::new(field, &config.provider_name, oidc, context)?, header })
    }

    pub(super) async fn request(&self, exchange: &mut Exchange) -> Result<(), ErrorResponse> {
        let Some(identity) = &exchange.caller.identity else { return Ok(()) };
        let token = self.tokens.of(identity, exchange).await?;
        let Ok(mut token) = HeaderValue::from_str(&format!("Bearer {token}")) else {
            return Err(self.tokens.refusal(ProviderTokenError::Malformed, identity, exchange).await);
        };
        token.set_sensitive(true);
        exchange.caller.authorization = exchange.headers.remove(header::AUTHORIZATION);
        // The cookies of this host are those of logins.
        exchange.headers.remove(header::COOKIE);
        exchange.headers.insert(self.header.clone(), token);
        Ok(())
    }
}
