//! What a workflow needs of its surroundings.

use std::{sync::Arc, time::Duration};

use serde_json::{Map, Value};

use crate::Checkpoint;

/// What runs the steps of a workflow.
pub trait Host: Sync {
    /// Calls a tool, and returns its result as the tool sent it. A tool that fails has a result, too.
    fn call(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
    ) -> impl Future<Output = Result<Value, CallError>> + Send;

    /// Whether runs that wait for an answer are kept, so that another process can go on with them. If so, a question has a
    /// [`Checkpoint`], and is sent while no other step runs.
    fn keeps_runs(&self) -> bool {
        false
    }

    /// Has the user answer a question.
    fn elicit(
        &self,
        question: Question,
        checkpoint: Option<Checkpoint>,
    ) -> impl Future<Output = Result<Answer, CallError>> + Send;

    /// The user has not answered in time. Completes when it is certain that this process alone goes on.
    fn withdraw(&self) -> impl Future<Output = ()> + Send {
        std::future::ready(())
    }

    /// Returns the input schema of a tool, also of one that clients do not see. It is needed for each call.
    fn input_schema(&self, tool: &str) -> Result<Option<Arc<Value>>, CallError>;

    /// Reserves this many bytes until the run ends, or returns why it cannot have them.
    fn reserve(&self, bytes: usize) -> Result<(), CallError>;

    /// Records what has happened.
    fn record(&self, event: Event<'_>);
}

/// Why a call has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct CallError {
    /// The reason.
    pub message: String,
    /// Whether another attempt would end the same.
    pub is_final: bool,
}

/// A question for the user.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// The step that has it.
    pub step: String,
    /// The text.
    pub message: String,
    /// The schema of the answer.
    pub schema: Value,
    /// How long the user may take.
    pub time: Duration,
}

/// What the user answers.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// With this content.
    Accept(Value),
    /// The user declines.
    Decline,
    /// The user dismisses the question.
    Cancel,
}

/// Something that happens to a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Event<'a> {
    /// A step starts.
    Started {
        /// The step.
        step: &'a str,
    },
    /// A step has ended.
    Ended {
        /// The step.
        step: &'a str,
        /// How.
        status: StepStatus,
        /// Why, if it failed.
        error: Option<&'a str>,
        /// How many steps have ended.
        done: usize,
        /// How many there are.
        of: usize,
    },
}

/// How a step ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepStatus {
    /// It has a result.
    Completed,
    /// It failed.
    Failed,
    /// It did not run.
    Skipped,
}

impl StepStatus {
    /// Its name in templates.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
        }
    }
}
