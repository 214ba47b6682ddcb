//! Errors.

/// Why a caller could not be authenticated. The message never contains a part of the token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AuthenticationError {
    /// The request is malformed.
    #[error("{0}")]
    Request(&'static str),
    /// The token is invalid.
    #[error("{0}")]
    Token(&'static str),
    /// The issuer is unavailable.
    #[error("tokens cannot be checked at the moment")]
    Unavailable,
}

impl AuthenticationError {
    /// The error code of RFC 6750.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Request(_) => "invalid_request",
            Self::Token(_) => "invalid_token",
            Self::Unavailable => "temporarily_unavailable",
        }
    }
}

/// An invalid configuration. The message names the field.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct SetupError(pub(crate) String);

impl SetupError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}
