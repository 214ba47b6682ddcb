//! The server receives the caller's token of an identity provider, in place of the one for the proxy.

use http::{HeaderName, HeaderValue, header};
use serde_json::Value;
use skep_auth::{AuthenticationError, ProtectedResource};
use skep_config::run_config::{self, HeaderStrategy, Oidc};
use skep_mcp::{Era, Method, header::MCP_SESSION_ID};

use super::{ChainContext, authentication::rejected, provider::Provider};
use crate::{
    ConfigError, ProviderTokenError, headers::is_reserved, http::ErrorResponse, identity::Identity,
    message::Exchange, sessions::Sessions,
};

/// Replaces tokens.
pub(crate) struct UpstreamSwap {
    provider: Provider,
    header: HeaderName,
    resource: ProtectedResource,
    sessions: Option<Sessions>,
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
        Ok(Self { provider, header, resource, sessions: context.sessions.clone() })
    }

    pub(super) async fn request(&self, exchange: &mut Exchange) -> Result<(), ErrorResponse> {
        let Some(identity) = &exchange.identity else { return Ok(()) };
        let token = self.provider.token(identity).await.and_then(|token| {
            HeaderValue::from_str(&format!("Bearer {token}")).map_err(|_| ProviderTokenError::Malformed)
        });
        let mut token = match token {
            Ok(token) => token,
            Err(error) => return Err(self.refusal(error, identity, exchange).await),
        };
        token.set_sensitive(true);
        exchange.authorization = exchange.headers.remove(header::AUTHORIZATION);
        // The cookies of this host are those of logins.
        exchange.headers.remove(header::COOKIE);
        exchange.headers.insert(self.header.clone(), token);
        Ok(())
    }

    /// The response to a caller without a token of the provider. A client that opens addresses gets the page where its user
    /// connects the account, and keeps its session; others log in again.
    async fn refusal(
        &self,
        error: ProviderTokenError,
        identity: &Identity,
        exchange: &Exchange,
    ) -> ErrorResponse {
        let may_connect = matches!(error, ProviderTokenError::NotConnected | ProviderTokenError::Expired);
        if may_connect
            && is_call(exchange)
            && let Some(capabilities) = self.capabilities(exchange).await
            && let Some(rejection) = self.provider.connect_page(identity, &capabilities)
        {
            return exchange.reject(&rejection);
        }
        rejected(&unauthenticated(error), &self.resource, &exchange.headers)
    }

    /// What the client has declared: since 2026-07-28 with each request, before that when its session started.
    async fn capabilities(&self, exchange: &Exchange) -> Option<Value> {
        let message = exchange.message.as_ref()?;
        if message.era == Era::Modern {
            let envelope = message.envelope().ok()?;
            return serde_json::from_str(envelope.meta().client_capabilities()?.as_str()).ok();
        }
        let id = exchange.headers.get(MCP_SESSION_ID)?.to_str().ok()?;
        let session = self.sessions.as_ref()?.get(id).await.ok()??;
        let initialize = session.initialize.as_ref().filter(|_| session.belongs_to(exchange.owner()))?;
        let mut initialize: Value = serde_json::from_slice(initialize).ok()?;
        Some(initialize["params"]["capabilities"].take())
    }
}

/// Whether a request uses something of the server, so that its client can repeat it later.
fn is_call(exchange: &Exchange) -> bool {
    let message = exchange.message.as_ref().filter(|message| message.id.is_some());
    let method = message.and_then(|message| message.method);
    matches!(method, Some(Method::ToolsCall | Method::PromptsGet | Method::ResourcesRead))
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
