//! What is wrong with a workflow.

use std::fmt::{self, Display};

use skep_api::Duration;

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    /// What it is about.
    pub(crate) cause: Cause,
    /// Where it is, what is wrong and what to do, in a sentence.
    message: String,
}

/// What a problem is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// The workflow, its steps or its output.
    Workflow,
    /// A JSON Schema.
    Schema,
    /// A template.
    Template,
    /// Steps that wait for each other.
    Cycle,
}

impl Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// The problems that were found, in the order in which they stand in the workflow.
#[derive(Default)]
pub(super) struct Problems {
    found: Vec<Problem>,
    more: usize,
}

impl Problems {
    /// How many are told. More would help nobody, and a status has no room for any number of them.
    const TOLD: usize = 50;

    pub(super) fn add(&mut self, cause: Cause, place: impl Display, message: impl Display) {
        if self.found.len() < Self::TOLD {
            self.found.push(Problem { cause, message: format!("{place}: {message}") });
        } else {
            self.more += 1;
        }
    }

    pub(super) fn into_result(mut self) -> Result<(), Vec<Problem>> {
        if self.more > 0 {
            let message = format!("and {} more problems", self.more);
            self.found.push(Problem { cause: Cause::Workflow, message });
        }
        if self.found.is_empty() { Ok(()) } else { Err(self.found) }
    }
}

/// Checks a duration, and that it is not longer than what is allowed.
pub(super) fn duration(
    place: impl Display,
    duration: Option<&Duration>,
    most: Option<&Duration>,
    problems: &mut Problems,
) {
    let Some(duration) = duration else { return };
    match (duration.to_std(), most.map(|most| (most, most.to_std()))) {
        (Err(error), _) => problems.add(Cause::Workflow, place, error),
        (Ok(time), Some((text, Ok(most)))) if time > most => {
            let message =
                format!("{} is longer than {}, which is the most", duration.as_str(), text.as_str());
            problems.add(Cause::Workflow, place, message);
        }
        _ => {}
    }
}

/// A text in quotes, not too long for a message.
pub(super) fn quoted(text: &str) -> String {
    const LONGEST: usize = 80;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{:?}…", &text[..end]),
        None => format!("{text:?}"),
    }
}
