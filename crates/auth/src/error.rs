//! What can be wrong.

/// Why no identity could be made out. What is said never repeats a part of the token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The request is not as it should be.
    #[error("{0}")]
    Request(&'static str),
    /// The token is not to be trusted.
    #[error("{0}")]
    Token(&'static str),
    /// Nobody can say at the moment: the issuer cannot be asked.
    #[error("tokens cannot be checked at the moment")]
    Unavailable,
}

impl Refusal {
    /// The code of RFC 6750.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Request(_) => "invalid_request",
            Self::Token(_) => "invalid_token",
            Self::Unavailable => "temporarily_unavailable",
        }
    }
}

/// What is wrong with how tokens are to be checked or exchanged: a sentence that names the field.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct SetupError(pub(crate) String);

impl SetupError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}
