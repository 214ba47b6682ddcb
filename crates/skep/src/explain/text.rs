//! An explanation for people.

use std::fmt::Write;

use skep_proxy::{Explanation, Outcome};

use super::Subject;

/// One line for each middleware, what it does below it, and the end.
pub(super) fn explanation(subject: &Subject, steps: &[Explanation]) -> String {
    let width = steps.iter().map(|step| step.middleware.len()).max().unwrap_or_default();
    let mut text = format!("{}\n", subject.name());
    for Explanation { middleware, outcome, details } in steps {
        let outcome = match outcome {
            Outcome::Passes => "passes".to_owned(),
            Outcome::Rejected { status, message } => format!("rejects it with {status}: {message}"),
            Outcome::NotTried => "not tried".to_owned(),
        };
        // Writing to a string does not fail.
        writeln!(text, "  {middleware:width$}  {outcome}").ok();
        for detail in details {
            writeln!(text, "  {:width$}    {detail}", "").ok();
        }
    }
    match steps.iter().find(|step| step.outcome.is_rejected()) {
        Some(step) => writeln!(text, "rejected by {}", step.middleware).ok(),
        None => writeln!(text, "allowed; it is sent to {}", subject.destination()).ok(),
    };
    text
}
