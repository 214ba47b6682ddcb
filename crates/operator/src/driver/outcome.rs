//! How the work on an object ends.

use std::fmt::Display;

use skep_converge::{Child, Error};
use skep_world::ReadError;

/// Why an object cannot have its children as it is. What runs goes on running.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocked {
    /// What is wrong and where, for people.
    pub message: String,
}

impl Blocked {
    /// Blocked, with a sentence that says why.
    pub fn new(message: impl Display) -> Self {
        Self { message: message.to_string() }
    }
}

impl From<Error> for Blocked {
    fn from(error: Error) -> Self {
        Self::new(error)
    }
}

/// How the work on an object ended.
#[derive(Debug)]
pub enum Outcome {
    /// The children are what they should be. These had to be made or changed for it. One that another operator made, and
    /// that only became ours, is not among them: nothing that runs is another.
    Converged(Vec<Child>),
    /// The object must change, or something that it refers to; nothing was written.
    Blocked(Blocked),
    /// A write failed. It is tried again, unless only another spec will help.
    Failed(Error),
}

impl Outcome {
    /// Why the children are not what they should be.
    pub(super) fn problem(&self) -> Option<String> {
        match self {
            Self::Converged(_) => None,
            Self::Blocked(blocked) => Some(blocked.message.clone()),
            Self::Failed(error) => Some(error.to_string()),
        }
    }
}

/// Why the work on an object is to be tried again.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// Something could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// Something could not be written.
    #[error(transparent)]
    Write(#[from] Error),
}
