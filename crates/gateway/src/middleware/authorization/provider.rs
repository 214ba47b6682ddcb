//! Claims of an identity provider, for policies about these.

use std::sync::Arc;

use super::super::{ChainContext, unsupported_auth_server};
use crate::{AuthorizationServer, ConfigError, identity::Identity};

/// A provider of the authorization server in this process.
pub(super) struct Provider {
    server: Arc<dyn AuthorizationServer>,
    name: String,
}

impl Provider {
    /// The provider with this name, if one is named.
    pub(super) fn new(name: &str, context: &ChainContext<'_>) -> Result<Option<Self>, ConfigError> {
        let field = "authorization: cedar.primary_upstream_provider";
        match &context.authorization_server {
            _ if name.is_empty() => Ok(None),
            None => Err(unsupported_auth_server(field)),
            Some(server) if !server.providers().contains(&name) => {
                Err(ConfigError::new(format!("{field}: the authorization server has no provider {name:?}")))
            }
            Some(server) => Ok(Some(Self { server: server.clone(), name: name.to_owned() })),
        }
    }

    /// The caller with the claims of its token of this provider.
    pub(super) async fn principal(&self, identity: Option<&Identity>) -> Option<Arc<Identity>> {
        let identity = identity?;
        let claims = self.server.provider_claims(identity.session.as_ref()?, &self.name).await.ok()??;
        Some(Arc::new(Identity { claims, ..identity.clone() }))
    }
}
