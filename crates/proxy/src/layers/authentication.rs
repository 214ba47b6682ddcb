//! Who calls.

use std::sync::Arc;

use skep_config::run_config::Auth;

use crate::{ConfigError, answer::Refused, exchange::Exchange, identity::Identity};

/// How callers are known.
pub(crate) enum Authentication {
    /// They are not asked: all are one local user.
    Local(Arc<Identity>),
}

impl Authentication {
    pub(super) fn new(parameters: &Auth) -> Result<Self, ConfigError> {
        match parameters.oidc_config {
            None => Ok(Self::Local(Arc::new(Identity::local()))),
            Some(_) => Err(ConfigError::new("auth: oidc_config is not supported by this version")),
        }
    }

    pub(super) fn request(&self, exchange: &mut Exchange) -> Result<(), Refused> {
        let Self::Local(identity) = self;
        exchange.identity = Some(identity.clone());
        Ok(())
    }
}
