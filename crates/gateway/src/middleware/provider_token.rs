//! Requests that need the caller's token of an identity provider, and the response to a caller without one.

use skep_auth::{AuthenticationError, ProtectedResource};
use skep_config::run_config::Oidc;
use skep_mcp::{ConnectAnswer, Era, Method, Raw};

use super::{ChainContext, authentication::rejected, provider::Provider};
use crate::{
    ConfigError, ProviderTokenError,
    headers::MCP_SESSION_ID,
    http::ErrorResponse,
    identity::Identity,
    message::{Exchange, ParsedMessage},
    sessions::Sessions,
};

/// The tokens of one provider, without which a request is not served.
pub(super) struct ProviderToken {
    provider: Provider,
    resource: ProtectedResource,
    sessions: Option<Sessions>,
}

impl ProviderToken {
    /// Those of the provider with the name that a field has. `oidc` is how callers are authenticated: with it, they learn where
    /// to log in again.
    pub(super) fn new(
        field: &str,
        name: &str,
        oidc: Option<&Oidc>,
        context: &ChainContext<'_>,
    ) -> Result<Self, ConfigError> {
        let none = Oidc::default();
        let resource = ProtectedResource::new(oidc.unwrap_or(&none), context.server);
        let provider = Provider::new(field, name, context)?;
        Ok(Self { provider, resource, sessions: context.sessions.clone() })
    }

    /// The token of the caller, or the response in place of it.
    pub(super) async fn of(&self, identity: &Identity, exchange: &Exchange) -> Result<String, ErrorResponse> {
        match self.provider.token(identity).await {
            Ok(token) => Ok(token),
            Err(error) => Err(self.refusal(error, identity, exchange).await),
        }
    }

    /// The response to a caller without a token. A client that opens addresses gets the page where its user connects the
    /// account, and keeps its session; others log in again.
    pub(super) async fn refusal(
        &self,
        error: ProviderTokenError,
        identity: &Identity,
        exchange: &Exchange,
    ) -> ErrorResponse {
        let may_connect = matches!(error, ProviderTokenError::NotConnected | ProviderTokenError::Expired);
        if may_connect
            && is_call(exchange)
            && let Some(message) = exchange.message.as_ref().filter(|message| !has_refused(message))
            && let Some(capabilities) = self.capabilities(exchange).await
            && let Some(capabilities) = Raw::spelled(&capabilities)
            && let Some(rejection) = self.provider.connect_page(identity, capabilities, message.era)
        {
            return exchange.reject(&rejection);
        }
        rejected(&unauthenticated(error), &self.resource, &exchange.headers)
    }

    /// What the client has declared, as JSON: since 2026-07-28 with each request, before that when its session started.
    async fn capabilities(&self, exchange: &Exchange) -> Option<String> {
        let message = exchange.message.as_ref()?;
        if message.era == Era::Modern {
            let envelope = message.envelope().ok()?;
            return Some(envelope.meta().client_capabilities()?.as_str().to_owned());
        }
        let id = exchange.headers.get(&MCP_SESSION_ID)?.to_str().ok()?;
        let session = self.sessions.as_ref()?.get(id).await.ok()??;
        let initialize = session.initialize.as_ref().filter(|_| session.belongs_to(exchange.owner()))?;
        let initialize = Raw::spelled(std::str::from_utf8(initialize).ok()?)?;
        let capabilities = initialize.get("params")?.get("capabilities")?;
        Some(capabilities.as_str().to_owned())
    }
}

/// Whether a request uses something of the server, so that its client can repeat it later.
fn is_call(exchange: &Exchange) -> bool {
    let message = exchange.message.as_ref().filter(|message| message.id.is_some());
    let method = message.and_then(|message| message.method);
    matches!(method, Some(Method::ToolsCall | Method::PromptsGet | Method::ResourcesRead))
}

/// Whether the user does not want to connect the account.
fn has_refused(message: &ParsedMessage) -> bool {
    let answer = message.envelope().ok().and_then(|envelope| ConnectAnswer::of(envelope.params()));
    answer == Some(ConnectAnswer::Refused)
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
