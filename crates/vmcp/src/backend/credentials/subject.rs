//! Whose token is exchanged for the credentials of a caller.

use skep_config::FieldError;

use super::{Server, provider::Provider};
use crate::backend::{BackendError, Caller};

/// Whose token it is.
pub(super) enum Subject {
    /// The caller's own.
    Caller,
    /// The caller's access token of an identity provider.
    Provider(Provider),
    /// The caller's ID token of an identity provider.
    IdToken(Provider),
}

/// The field of most strategies that names a provider.
pub(super) const FIELD: &str = "subjectProviderName";

impl Subject {
    /// The caller's token of the provider that a field names, or its own.
    pub(super) fn named(
        field: &'static str,
        name: &Option<String>,
        server: Server<'_>,
    ) -> Result<Self, FieldError> {
        match name.as_deref().filter(|name| !name.is_empty()) {
            Some(name) => Provider::new(field, name, server).map(Self::Provider),
            None => Ok(Self::Caller),
        }
    }

    /// The same, where the first provider is the default: a token of the authorization server itself is of no use to others.
    pub(super) fn or_first(name: &Option<String>, server: Server<'_>) -> Result<Self, FieldError> {
        let first = server.embedded.and_then(|server| Some((*server.providers().first()?).to_owned()));
        Self::named(FIELD, &name.clone().filter(|name| !name.is_empty()).or(first), server)
    }

    /// The ID token of a provider, which must be named where there are several.
    pub(super) fn id_token(name: &Option<String>, server: Server<'_>) -> Result<Self, FieldError> {
        let is_named = name.as_ref().is_some_and(|name| !name.is_empty());
        if !is_named && server.embedded.is_some_and(|server| server.providers().len() > 1) {
            return Err(FieldError::new(FIELD, "is required with several providers: name one of them"));
        }
        Ok(match Self::or_first(name, server)? {
            Self::Provider(provider) => Self::IdToken(provider),
            other => other,
        })
    }

    /// The token of a caller. The virtual server itself has none.
    pub(super) async fn token(&self, caller: &Caller) -> Result<Option<String>, BackendError> {
        let Some(identity) = &caller.identity else { return Ok(None) };
        let token = match self {
            Self::Caller => {
                let token = caller.token.as_deref().filter(|token| !token.is_empty());
                let missing = || BackendError::NoCredentials("the caller has no token".into());
                token.ok_or_else(missing)?.to_owned()
            }
            Self::Provider(provider) => provider.token(identity).await?,
            Self::IdToken(provider) => provider.id_token(identity).await?,
        };
        Ok(Some(token))
    }
}
