//! The server receives the caller's token of an identity provider, in place of the one for the proxy.

use http::{HeaderName, HeaderValue, header};
use skep_auth::{AuthenticationError, ProtectedResource};
use skep_config::run_config::{self, HeaderStrategy, Oidc};

use super::{ChainContext, authentication::rejected, provider::Provider};
use crate::{ConfigError, ProviderTokenError, headers::is_reserved, http::ErrorResponse, message::Exchange};

/// Replaces tokens.
pub(crate) struct UpstreamSwap {
    provider: Provider,
    header: HeaderName,
    resource: ProtectedResource,
}

impl UpstreamSwap {
    /// `oidc` is how callers are authenticated: with it, they learn where to log in again.
    pub(super) fn new(
        config: &run_config::UpstreamSwap,
        oidc: Option<&Oidc>,
        context: &ChainContext<'_>,
    ) -> Result<Self, ConfigError> {
        let header = match config.header_strategy {
            None | Some(HeaderStrategy::Replace) => header::AUTHORIZATION,
            Some(HeaderStrategy::Custom) => {
                let name = &config.custom_header_name;
                let named = name.parse().ok().filter(|named| !is_reserved(named));
                let message = format!("upstreamswap: custom_header_name: {name:?} cannot be set");
                named.ok_or_else(|| ConfigError::new(message))?
            }
        };
        let provider = Provider::new("upstreamswap: provider_name", &config.provider_name, context)?;
        let none = Oidc::default();
        let resource = ProtectedResource::new(oidc.unwrap_or(&none), context.server);
        Ok(Self { provider, header, resource })
    }

    pub(super) async fn request(&self, exchange: &mut Exchange) -> Result<(), ErrorResponse> {
        let Some(identity) = &exchange.identity else { return Ok(()) };
        let token = self.provider.token(identity).await.and_then(|token| {
            HeaderValue::from_str(&format!("Bearer {token}")).map_err(|_| ProviderTokenError::Malformed)
        });
        let mut token =
            token.map_err(|error| rejected(&unauthenticated(error), &self.resource, &exchange.headers))?;
        token.set_sensitive(true);
        exchange.authorization = exchange.headers.remove(header::AUTHORIZATION);
        // The cookies of this host are those of logins.
        exchange.headers.remove(header::COOKIE);
        exchange.headers.insert(self.header.clone(), token);
        Ok(())
    }
}

/// Why the caller must log in again, or retry.
fn unauthenticated(error: ProviderTokenError) -> AuthenticationError {
    match error {
        ProviderTokenError::Unavailable => AuthenticationError::Unavailable,
        ProviderTokenError::NotConnected => AuthenticationError::Token(
            "there is no login at the identity provider of this server: authenticate again",
        ),
        _ => AuthenticationError::Token(
            "the token of the identity provider is no longer valid: authenticate again",
        ),
    }
}
