//! The mistakes in a workflow.

use std::fmt::{self, Display};

use skep_api::Duration;
use skep_config::{FieldError, FieldPath};

/// One mistake. Fields are below the tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkflowError {
    /// What it concerns.
    pub cause: Cause,
    /// The field, and what is wrong with it.
    pub error: FieldError,
}

/// What a mistake concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The workflow, its steps or its output.
    Workflow,
    /// A JSON Schema.
    Schema,
    /// A template.
    Template,
    /// Steps that wait for each other.
    Cycle,
}

impl WorkflowError {
    /// A template in this field is not valid.
    pub(crate) fn template(field: &'static str, message: impl Display) -> Self {
        Self { cause: Cause::Template, error: FieldError::new(field, message.to_string()) }
    }
}

impl Display for WorkflowError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

/// The mistakes so far, in the order of the workflow.
#[derive(Default)]
pub(super) struct Errors {
    listed: Vec<WorkflowError>,
    more: usize,
    warnings: Vec<FieldError>,
}

impl Errors {
    /// How many are listed. The size of a status is limited, and the first ones are enough to start with.
    const MAX_LISTED: usize = 50;

    pub(super) fn add(&mut self, cause: Cause, field: impl Into<FieldPath>, message: impl Display) {
        if self.listed.len() < Self::MAX_LISTED {
            let error = FieldError::new(field, message.to_string());
            self.listed.push(WorkflowError { cause, error });
        } else {
            self.more += 1;
        }
    }

    /// Adds what is doubtful, and runs all the same.
    pub(super) fn warn(&mut self, field: impl Into<FieldPath>, message: impl Display) {
        if self.warnings.len() < Self::MAX_LISTED {
            self.warnings.push(FieldError::new(field, message.to_string()));
        }
    }

    pub(super) fn into_warnings(self) -> Vec<FieldError> {
        self.warnings
    }

    pub(super) fn into_vec(mut self) -> Vec<WorkflowError> {
        if self.more > 0 {
            let error = FieldError::new("", format!("and {} more errors", self.more));
            self.listed.push(WorkflowError { cause: Cause::Workflow, error });
        }
        self.listed
    }
}

/// Checks a duration, and that it is not longer than the maximum.
pub(super) fn duration(
    field: impl Into<FieldPath>,
    duration: Option<&Duration>,
    max: Option<&Duration>,
    errors: &mut Errors,
) {
    let Some(duration) = duration else { return };
    match (duration.to_std(), max.map(|max| (max, max.to_std()))) {
        (Err(error), _) => errors.add(Cause::Workflow, field, error),
        (Ok(time), Some((text, Ok(max)))) if time > max => {
            let message = format!("{} is longer than the maximum of {}", duration.as_str(), text.as_str());
            errors.add(Cause::Workflow, field, message);
        }
        _ => {}
    }
}

/// A text in quotes, truncated to fit into a message.
pub(super) fn quoted(text: &str) -> String {
    const MAX_LENGTH: usize = 80;
    match text.char_indices().nth(MAX_LENGTH) {
        Some((end, _)) => format!("{:?}…", &text[..end]),
        None => format!("{text:?}"),
    }
}
