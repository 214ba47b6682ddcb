//! What a script needs of its surroundings.

use std::time::Duration;

use serde_json::Value;

/// What makes the calls of a script.
pub trait Host: Sync {
    /// Calls a tool with these arguments, an object as JSON, and returns what the script sees of its result.
    fn call(&self, tool: &str, arguments: String) -> impl Future<Output = Result<Value, CallError>> + Send;

    /// How long calls have waited for input of the user. It does not count as time that the script takes.
    fn input_time(&self) -> Duration {
        Duration::ZERO
    }
}

/// Why a call has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CallError(pub String);
