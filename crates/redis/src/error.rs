//! Errors of Redis: their cause for metrics, their description for logs, and whether another connection may
//! help.

use std::io;

use redis::{ErrorKind, RedisError, ServerErrorKind};

use crate::Address;

/// An operation that Redis did not respond to, or rejected. The log has the details.
#[derive(Debug)]
pub struct RedisUnavailable(pub Cause);

/// The cause of a failure, for metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// There was no response in time.
    Timeout,
    /// The connection could not be opened, or was lost.
    Connection,
    /// Redis rejects the user or the password, or requires them.
    Auth,
    /// Redis responded with another error.
    Other,
}

/// A Redis that cannot be used when its client starts.
#[derive(Debug, thiserror::Error)]
#[error("the Redis at {place} cannot be used: {reason}")]
pub struct CheckError {
    /// The part of the configuration that has the settings of the Redis.
    pub field: &'static str,
    pub(crate) place: String,
    pub(crate) reason: String,
}

/// An operation that failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Nothing was sent: another request is connecting, or has just failed to.
    FailFast(Cause),
    /// Redis could not be reached, or responded with an error.
    Redis(RedisError),
    /// A Sentinel could not be reached, or responded with an error.
    Sentinel(Address, RedisError),
    /// A Sentinel does not know the primary with this name.
    UnknownPrimary(Address, String),
}

impl From<RedisError> for Failure {
    fn from(error: RedisError) -> Self {
        Self::Redis(error)
    }
}

impl Failure {
    pub(crate) fn timeout() -> Self {
        Self::Redis(io::Error::from(io::ErrorKind::TimedOut).into())
    }

    pub(crate) fn cause(&self) -> Cause {
        match self {
            Self::FailFast(cause) => *cause,
            Self::Redis(error) | Self::Sentinel(_, error) => Cause::of(error),
            Self::UnknownPrimary(..) => Cause::Other,
        }
    }

    /// Whether a retry cannot succeed.
    pub(crate) fn is_permanent(&self) -> bool {
        match self {
            Self::Redis(error) => error.kind() == ErrorKind::InvalidClientConfig || is_unauthenticated(error),
            Self::FailFast(_) | Self::Sentinel(..) | Self::UnknownPrimary(..) => false,
        }
    }

    /// Whether Redis does not know a script by its digest, and has not run it.
    pub(crate) fn is_unknown_script(&self) -> bool {
        matches!(self, Self::Redis(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript))
    }

    /// The failure for a log. `password` is the name of the variable with the password.
    pub(crate) fn describe(&self, password: &str) -> String {
        match self {
            Self::FailFast(_) => "another request could not connect".to_owned(),
            Self::Redis(error) if error.kind() == ErrorKind::AuthenticationFailed => {
                format!("it rejects the user or the password in {password}")
            }
            Self::Redis(error) if error.code() == Some("NOAUTH") => {
                format!("it requires a password: set {password}")
            }
            Self::Redis(error) => describe(error),
            Self::Sentinel(address, error) => format!("the Sentinel {address}: {}", describe(error)),
            Self::UnknownPrimary(address, primary) => {
                format!("the Sentinel {address} does not know the primary {primary}")
            }
        }
    }
}

impl Cause {
    fn of(error: &RedisError) -> Self {
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

/// The error for a log: of Redis's message only the code, because it may repeat a command.
pub(crate) fn describe(error: &RedisError) -> String {
    match (error.kind(), error.code()) {
        (ErrorKind::Io | ErrorKind::InvalidClientConfig, _) => error.to_string(),
        (_, Some("MOVED")) => "it is a node of a cluster, and is configured as a server".to_owned(),
        (_, Some(code)) => format!("it responds with {code}"),
        (_, None) => error.category().to_owned(),
    }
}

/// Whether a command was not executed, or not only there, because this is not the primary any more.
pub(crate) fn is_demoted(error: &RedisError) -> bool {
    error.kind() == ErrorKind::Server(ServerErrorKind::ReadOnly)
}

fn is_unauthenticated(error: &RedisError) -> bool {
    error.kind() == ErrorKind::AuthenticationFailed || error.code() == Some("NOAUTH")
}
