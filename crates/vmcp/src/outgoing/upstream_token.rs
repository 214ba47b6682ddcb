//! The caller's token of an identity provider, which the authorization server in this process keeps.

use std::sync::Arc;

use skep_api::vmcp::BackendAuthStrategy;
use skep_config::FieldError;
use skep_gateway::{AuthorizationServer, ProviderTokenError};

use crate::backend::{BackendError, Caller};

/// The tokens of one provider.
pub(crate) struct UpstreamToken {
    server: Arc<dyn AuthorizationServer>,
    provider: String,
}

impl UpstreamToken {
    pub(super) fn new(
        strategy: &BackendAuthStrategy,
        server: Option<&Arc<dyn AuthorizationServer>>,
    ) -> Result<Self, FieldError> {
        let inject = strategy.upstream_inject.as_ref();
        let inject = inject.ok_or_else(|| FieldError::new("upstreamInject", "is required for this type"))?;
        let server = server.ok_or_else(|| {
            FieldError::new("type", "upstream_inject needs an authorization server: authserver-config.yaml")
        })?;
        if !server.providers().contains(&&*inject.provider_name) {
            let message = format!("the authorization server has no provider {:?}", inject.provider_name);
            return Err(FieldError::new("providerName", message).within("upstreamInject"));
        }
        Ok(Self { server: server.clone(), provider: inject.provider_name.clone() })
    }

    /// The token of a caller. The virtual server itself has none, and lists what the backend shows to strangers.
    pub(super) async fn of(&self, caller: &Caller) -> Result<Option<String>, BackendError> {
        let Some(identity) = caller.identity.as_ref().filter(|_| self.server.injects_tokens()) else {
            return Ok(None);
        };
        let session = identity.session.as_ref().ok_or_else(|| {
            let reason = "the caller's token has no session at this provider";
            BackendError::NoCredentials(format!("{}: {reason}", self.provider))
        })?;
        let token = self.server.provider_token(session, &self.provider).await;
        token.map(Some).map_err(|error| match error {
            ProviderTokenError::NotConnected | ProviderTokenError::Expired => BackendError::NotConnected {
                provider: self.provider.clone(),
                reason: error.to_string(),
                url: self.server.connections_url(session),
            },
            _ => BackendError::NoCredentials(format!("{}: {error}", self.provider)),
        })
    }
}
