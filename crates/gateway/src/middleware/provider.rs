//! A caller's token of an identity provider, which the authorization server in this process keeps.

use std::sync::Arc;

use serde_json::{Map, Value};
use skep_mcp::{Era, Raw, Rejection};

use super::ChainContext;
use crate::{AuthorizationServer, ConfigError, ProviderTokenError, connect_page, identity::Identity};

/// A provider of the authorization server in this process.
pub(super) struct Provider {
    server: Arc<dyn AuthorizationServer>,
    name: String,
}

impl Provider {
    /// The provider with the name that a field has.
    pub(super) fn new(field: &str, name: &str, context: &ChainContext<'_>) -> Result<Self, ConfigError> {
        let Some(server) = &context.extras.authorization_server else {
            return Err(ConfigError::new(format!(
                "{field} needs embedded_auth_server_config, which is missing"
            )));
        };
        if !server.providers().contains(&name) {
            return Err(ConfigError::new(format!(
                "{field}: the authorization server has no provider {name:?}"
            )));
        }
        Ok(Self { server: server.clone(), name: name.to_owned() })
    }

    /// The caller's token. One whose own token is not of the authorization server has none.
    pub(super) async fn token(&self, identity: &Identity) -> Result<String, ProviderTokenError> {
        let session = identity.session.as_ref().ok_or(ProviderTokenError::NotConnected)?;
        self.server.provider_token(session, &self.name).await
    }

    /// What a client that opens addresses gets, if the caller's account is to be connected first.
    pub(super) fn connect_page(
        &self,
        identity: &Identity,
        capabilities: Raw<'_>,
        era: Era,
    ) -> Option<Rejection> {
        let session = identity.session.as_ref()?;
        connect_page(capabilities, era, &self.name, &self.server.connections_url(session))
    }

    /// The claims of the caller's token, if it has one. `None` within: there are none that can be read.
    pub(super) async fn claims(&self, identity: &Identity) -> Option<Option<Map<String, Value>>> {
        self.server.provider_claims(identity.session.as_ref()?, &self.name).await.ok()
    }
}
