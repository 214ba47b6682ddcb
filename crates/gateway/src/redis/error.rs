//! Why Redis is unavailable.

use std::io;

use ::redis::{ErrorKind, RedisError, ServerErrorKind};
use skep_config::env;

/// Redis does not respond, or responds with an error. The log has the details.
#[derive(Debug)]
pub struct RedisUnavailable(pub Cause);

/// Why, for metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    Timeout,
    Connection,
    Auth,
    Other,
}

/// Why there is no response.
#[derive(Debug)]
pub(super) enum Failure {
    /// Another request has just failed to connect, or is trying to.
    Known(Cause),
    New(RedisError),
}

impl From<RedisError> for Failure {
    fn from(error: RedisError) -> Self {
        Self::New(error)
    }
}

impl Failure {
    pub(super) fn cause(&self) -> Cause {
        match self {
            Self::Known(cause) => *cause,
            Self::New(error) => Cause::of(error),
        }
    }
}

impl Cause {
    pub(super) fn of(error: &RedisError) -> Self {
        if is_unauthenticated(error) {
            Self::Auth
        } else if error.is_timeout() {
            Self::Timeout
        } else if error.is_io_error() || error.is_unrecoverable_error() {
            Self::Connection
        } else {
            Self::Other
        }
    }
}

pub(super) fn timed_out() -> RedisError {
    io::Error::from(io::ErrorKind::TimedOut).into()
}

/// Whether the connection must be replaced. A demoted primary rejects writes, and its successor has its address.
pub(super) fn is_lost(error: &RedisError) -> bool {
    let is_demoted = error.kind() == ErrorKind::Server(ServerErrorKind::ReadOnly);
    error.is_unrecoverable_error() || error.is_timeout() || is_demoted
}

/// Whether a retry cannot succeed.
pub(super) fn is_permanent(error: &RedisError) -> bool {
    error.kind() == ErrorKind::InvalidClientConfig || is_unauthenticated(error)
}

/// Whether Redis does not know a script by its digest, and has not run it.
pub(super) fn is_unknown_script(error: &RedisError) -> bool {
    error.kind() == ErrorKind::Server(ServerErrorKind::NoScript)
}

fn is_unauthenticated(error: &RedisError) -> bool {
    error.kind() == ErrorKind::AuthenticationFailed || error.code() == Some("NOAUTH")
}

/// The error for a log: of Redis's message only the code, because it may repeat a command.
pub(super) fn describe(error: &RedisError) -> String {
    match (error.kind(), error.code()) {
        (ErrorKind::AuthenticationFailed, _) => {
            format!("it rejects the password in {}", env::SESSION_REDIS_PASSWORD)
        }
        (ErrorKind::Io | ErrorKind::InvalidClientConfig, _) => error.to_string(),
        (_, Some("NOAUTH")) => format!("it requires a password: set {}", env::SESSION_REDIS_PASSWORD),
        (_, Some(code)) => format!("it responds with {code}"),
        (_, None) => error.category().to_owned(),
    }
}
