//! Workflows: the steps of a composite tool.
//!
//! [`check`] finds the mistakes of a definition; the operator reports them, and the virtual server refuses a workflow that has
//! any. [`Workflow`] is a definition whose templates are parsed, and [`run`] runs it once, and [`resume`] goes on
//! with a run that waits for an answer. What a step does is up to
//! the [`Host`]: nothing here does I/O.

mod check;
mod coerce;
mod compiled;
mod host;
mod parameters;
mod result;
mod run;
mod schema;
mod validation;

pub use check::{Cause, WorkflowError, check, check_as_part, check_permissions, check_tools, warnings};
pub use compiled::Workflow;
pub use host::{Answer, CallError, Event, Host, Question, StepStatus};
pub use result::{failure, output};
pub use run::{Checkpoint, RunError, resume, run};

/// A string, if it is not empty. In files, an empty string means the same as none.
fn non_empty(text: &Option<String>) -> Option<&str> {
    text.as_deref().filter(|text| !text.is_empty())
}
