//! Why a backend did not do what was requested. A message names no secret, and not the backend: callers do.

use std::time::Duration;

use http::StatusCode;
use skep_gateway::outbound;

/// Why a backend has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BackendError {
    #[error("{0}")]
    Unreachable(String),
    #[error("it closed the connection before its response was complete")]
    Broken,
    #[error("it sent nothing within {} s", .0.as_secs_f32())]
    Timeout(Duration),
    #[error("it has not completed the request within {} s", .0.as_secs_f32())]
    TooLong(Duration),
    #[error("it rejects the credentials of this request, or needs some (HTTP {})", .0.as_u16())]
    Unauthenticated(StatusCode),
    #[error("there are no credentials for it: {0}")]
    NoCredentials(String),
    /// The user must log in at an identity provider, which the page at the address begins.
    #[error("there are no credentials for it: {provider}: {reason}: connect it at {url}")]
    NotConnected { provider: String, reason: String, url: String },
    #[error("it responded with HTTP {}", .0.as_u16())]
    Status(StatusCode),
    #[error("it has lost the session")]
    SessionLost,
    #[error("its response is not a valid MCP message")]
    Malformed,
    #[error("its result {0}")]
    Result(&'static str),
    #[error("its result is of the type {0}, which is not supported")]
    ResultType(String),
    #[error("its response is too large")]
    TooLarge,
    #[error("there is no memory for its response now: try again later")]
    NoMemory,
    #[error("its lists have too many {0}")]
    TooMany(&'static str),
    #[error("{message}")]
    Rpc {
        code: i64,
        message: String,
        /// JSON, as it was received.
        data: Option<Box<str>>,
    },
    /// It needs something of the client, which it does not get.
    #[error("{0}")]
    Input(String),
    #[error("the client has cancelled the request")]
    Cancelled,
    #[error("it is unavailable since its last health checks")]
    CircuitOpen,
}

impl BackendError {
    /// It needs input of the client, and this is why it does not get it.
    pub(crate) fn input(reason: impl Into<String>) -> Self {
        Self::Input(reason.into())
    }

    /// The category that status pages show.
    pub(crate) fn category(&self) -> &'static str {
        match self {
            Self::Timeout(_) | Self::TooLong(_) => "timeout",
            Self::Unauthenticated(_) | Self::NoCredentials(_) | Self::NotConnected { .. } => {
                "authentication_failed"
            }
            _ => "backend_unavailable",
        }
    }

    pub(crate) fn is_unauthenticated(&self) -> bool {
        matches!(self, Self::Unauthenticated(_))
    }
}

impl From<outbound::Error> for BackendError {
    fn from(error: outbound::Error) -> Self {
        if error.is_connect() { Self::Unreachable(error.to_string()) } else { Self::Broken }
    }
}
