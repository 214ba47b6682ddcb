//! An explanation for people.

use std::fmt::Write;

use skep_proxy::{Explanation, Outcome};
use skep_vmcp::Destination;

use super::{
    Subject,
    subject::{Explained, Target},
};

/// One line for each middleware, what it does below it, and the end.
pub(super) fn explanation(subject: &Subject, explained: &Explained) -> String {
    let steps = &explained.steps;
    let width = steps.iter().map(|step| step.middleware.len()).max().unwrap_or_default();
    let mut text = format!("{}\n", subject.name());
    for Explanation { middleware, outcome, details } in steps {
        let outcome = match outcome {
            Outcome::NotTried => "not tried".to_owned(),
            Outcome::Undecided => "not decided here".to_owned(),
            outcome => outcome.rejection().unwrap_or_else(|| "passes".to_owned()),
        };
        // Writing to a string does not fail.
        writeln!(text, "  {middleware:width$}  {outcome}").ok();
        for detail in details {
            writeln!(text, "  {:width$}    {detail}", "").ok();
        }
    }
    match (&explained.destination, steps.last()) {
        (Some(target), _) if explained.is_undecided() => {
            writeln!(text, "only a running server decides; if it allows it, {}", sent(target)).ok()
        }
        (Some(target), _) => writeln!(text, "allowed; {}", sent(target)).ok(),
        (None, Some(step)) => writeln!(text, "rejected by {}", step.middleware).ok(),
        (None, None) => None,
    };
    text
}

fn sent(target: &Target) -> String {
    match target {
        Target::Server(server) => format!("it is sent to {server}"),
        Target::Routed(Destination::Backend { backend, name, authentication }) => {
            format!("it is sent to the backend {backend} as {name}, {authentication}")
        }
        Target::Routed(Destination::Workflow { calls }) => {
            format!(
                "it runs a workflow, which calls {}: each call is decided about by itself",
                calls.join(", ")
            )
        }
        Target::Routed(Destination::Own) => "it is answered by the virtual server itself".into(),
        Target::Routed(Destination::Unknown { backends }) if backends.is_empty() => {
            "it is sent to no backend: there is none".into()
        }
        Target::Routed(Destination::Unknown { backends }) => {
            format!(
                "it is sent to the backend that has it; what these have is not known here: {}",
                backends.join(", ")
            )
        }
    }
}
