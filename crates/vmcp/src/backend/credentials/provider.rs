//! A caller's tokens of an identity provider, which the authorization server in this process keeps.

use std::sync::Arc;

use skep_config::FieldError;
use skep_gateway::{AuthorizationServer, ProviderTokenError, identity::Identity};
use tracing::warn;

use super::Server;
use crate::backend::BackendError;

/// A provider of the authorization server.
pub(super) struct Provider {
    pub(super) server: Arc<dyn AuthorizationServer>,
    name: String,
    /// Whether the server has it. If not, calls of this backend fail, and nothing else.
    is_known: bool,
}

impl Provider {
    /// The provider with the name that a field has.
    pub(super) fn new(field: &'static str, name: &str, server: Server<'_>) -> Result<Self, FieldError> {
        let wrong = |message: String| FieldError::new(field, message);
        let Server { embedded, backend } = server;
        let server =
            embedded.ok_or_else(|| wrong("needs an authorization server: authserver-config.yaml".into()))?;
        let is_known = server.providers().contains(&name);
        if !is_known {
            warn!(
                "outgoingAuth for backend {backend}: {field}: the authorization server has no provider {name:?}: its calls \
                 will fail"
            );
        }
        Ok(Self { server: server.clone(), name: name.to_owned(), is_known })
    }

    /// The caller's access token.
    pub(super) async fn token(&self, identity: &Identity) -> Result<String, BackendError> {
        let session = self.session(identity)?;
        let token = self.server.provider_token(session, &self.name).await;
        token.map_err(|error| self.failure(session, error))
    }

    /// The caller's ID token.
    pub(super) async fn id_token(&self, identity: &Identity) -> Result<String, BackendError> {
        let session = self.session(identity)?;
        let token = self.server.provider_id_token(session, &self.name).await;
        token.map_err(|error| self.failure(session, error))
    }

    fn session<'a>(&self, identity: &'a Identity) -> Result<&'a str, BackendError> {
        if !self.is_known {
            let reason = format!("the authorization server has no provider {:?}", self.name);
            return Err(BackendError::NoCredentials(reason));
        }
        identity.session.as_deref().ok_or_else(|| {
            let reason = "the caller's token has no session at this provider";
            BackendError::NoCredentials(format!("{}: {reason}", self.name))
        })
    }

    fn failure(&self, session: &str, error: ProviderTokenError) -> BackendError {
        match error {
            ProviderTokenError::NotConnected | ProviderTokenError::Expired => BackendError::NotConnected {
                provider: self.name.clone(),
                reason: error.to_string(),
                url: self.server.connections_url(session),
            },
            _ => BackendError::NoCredentials(format!("{}: {error}", self.name)),
        }
    }
}
