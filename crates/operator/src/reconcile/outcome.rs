//! How the reconciliation of an object ends.

use std::fmt::Display;

use skep_config::FieldError;
use skep_converge::{Child, Error};
use skep_world::ReadError;

use super::Problem;

/// The children of a valid object cannot be built. A validation should have detected the cause.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BuildError(pub FieldError);

impl BuildError {
    /// An error that no field is known for.
    pub fn new(message: impl Display) -> Self {
        Self(FieldError::new("", message.to_string()))
    }
}

impl From<FieldError> for BuildError {
    fn from(error: FieldError) -> Self {
        Self(error)
    }
}

impl From<Error> for BuildError {
    fn from(error: Error) -> Self {
        Self::new(error)
    }
}

/// How the reconciliation of an object ended.
#[derive(Debug)]
pub enum Outcome {
    /// The children match the desired state. These were created or changed. Children that were only taken over from
    /// another operator are not included.
    Converged(Vec<Child>),
    /// The object, or something that it refers to, must change; nothing was written.
    Blocked(Problem),
    /// A write failed. It is retried, unless only another spec helps.
    Failed(Error),
}

impl Outcome {
    /// Why the children are not as desired.
    pub fn message(&self) -> Option<String> {
        match self {
            Self::Converged(_) => None,
            Self::Blocked(problem) => Some(problem.to_string()),
            Self::Failed(error) => Some(error.to_string()),
        }
    }
}

/// Why a reconciliation is retried.
#[derive(Debug, thiserror::Error)]
pub enum ReconcileError {
    /// Something could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// Something could not be written.
    #[error(transparent)]
    Write(#[from] Error),
    /// The status could not be written.
    #[error("cannot report the status: {0}")]
    Status(Error),
    /// It took too long.
    #[error("timeout")]
    Timeout,
    /// It met a defect of the operator, whose place is in the log.
    #[error("panic")]
    Panicked,
}
