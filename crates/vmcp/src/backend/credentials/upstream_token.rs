//! The caller's token of an identity provider, as the provider issued it.

use skep_api::vmcp::BackendAuthStrategy;
use skep_config::FieldError;

use super::{Server, block, provider::Provider};
use crate::backend::{BackendError, Caller};

/// The tokens of one provider.
pub(crate) struct UpstreamToken(Provider);

impl UpstreamToken {
    pub(super) fn new(strategy: &BackendAuthStrategy, server: Server<'_>) -> Result<Self, FieldError> {
        let inject = block("upstreamInject", &strategy.upstream_inject)?;
        let provider = Provider::new("providerName", &inject.provider_name, server);
        provider.map(Self).map_err(|error| error.within("upstreamInject"))
    }

    /// The token of a caller. The virtual server itself has none, and lists what the backend shows to strangers.
    pub(super) async fn of(&self, caller: &Caller) -> Result<Option<String>, BackendError> {
        match caller.identity.as_ref().filter(|_| self.0.server.injects_tokens()) {
            Some(identity) => self.0.token(identity).await.map(Some),
            None => Ok(None),
        }
    }
}
