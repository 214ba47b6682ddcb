//! The types that results have since 2026-07-28.

use skep_mcp::Raw;

use super::BackendError;

/// What a result is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResultType {
    /// The result of the request. Until 2025-11-25, there is no other.
    Complete,
    /// The request is to be sent again, with input of the client.
    InputRequired,
}

impl ResultType {
    /// That of this result. One of another type, such as a task, is no result: a client would take it for an empty one.
    pub(crate) fn of(result: Raw<'_>) -> Result<Self, BackendError> {
        let Some(kind) = result.get("resultType") else { return Ok(Self::Complete) };
        match kind.as_text().as_deref() {
            Some("complete") => Ok(Self::Complete),
            Some("input_required") => Ok(Self::InputRequired),
            _ => Err(BackendError::ResultType(kind.as_str().chars().take(SHOWN).collect())),
        }
    }
}

/// How much of an unknown type is shown.
const SHOWN: usize = 64;
