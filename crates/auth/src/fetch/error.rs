//! Why a request failed.

use std::{error::Error, io, iter};

use http::{StatusCode, Uri};

use super::origin;

/// Why there is no response. Of an address it names only the origin.
#[derive(Clone, Debug, thiserror::Error)]
pub enum FetchError {
    /// There is no absolute URL.
    #[error("it must be an absolute http or https URL")]
    NoAddress,
    /// The address is unencrypted.
    #[error("{0} is unencrypted, which is not allowed")]
    Plain(String),
    /// There is no connection, because of this.
    #[error("{0} cannot be reached: {1}")]
    Unreachable(String, String),
    /// Its address is one that must not be connected to.
    #[error("{0} cannot be reached: its address is private, which is not allowed")]
    Forbidden(String),
    /// The time is over.
    #[error("{0} did not respond in time")]
    Slow(String),
    /// The response has this status.
    #[error("{0} responded with status {1}")]
    Status(String, StatusCode),
    /// The response is malformed in this way.
    #[error("the response of {0} is malformed: {1}")]
    Answer(String, &'static str),
    /// The file has no token.
    #[error("the token file {0} cannot be read, or holds no token")]
    TokenFile(String),
}

impl FetchError {
    pub(crate) fn slow(uri: &Uri) -> Self {
        Self::Slow(origin(uri))
    }

    pub(crate) fn status(uri: &Uri, status: StatusCode) -> Self {
        Self::Status(origin(uri), status)
    }

    pub(crate) fn answer(uri: &Uri, what: &'static str) -> Self {
        Self::Answer(origin(uri), what)
    }

    /// With the causes: errors of TLS, DNS and sockets, none of which contains the request.
    pub(crate) fn unreachable(uri: &Uri, error: &(dyn Error + 'static)) -> Self {
        let causes = || iter::successors(error.source(), |&cause| cause.source());
        let is_forbidden = |cause: &(dyn Error + 'static)| {
            cause
                .downcast_ref::<io::Error>()
                .is_some_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
        };
        if causes().any(is_forbidden) {
            return Self::Forbidden(origin(uri));
        }
        Self::Unreachable(origin(uri), causes().map(ToString::to_string).collect::<Vec<_>>().join(": "))
    }

    /// Whether the same request may be responded to later.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Unreachable(..) | Self::Slow(_))
    }
}
