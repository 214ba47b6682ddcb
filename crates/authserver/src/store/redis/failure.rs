//! Failures of Redis, for logs.

use redis::{ErrorKind, RedisError};

/// The error for a log: of Redis's message only the code, because it may repeat a command.
pub(super) fn describe(error: &RedisError) -> String {
    match (error.kind(), error.code()) {
        (ErrorKind::AuthenticationFailed, _) => "it rejects the user or the password".into(),
        (ErrorKind::Io | ErrorKind::InvalidClientConfig, _) => error.to_string(),
        (_, Some(code)) => format!("it responds with {code}"),
        (_, None) => error.category().to_owned(),
    }
}
