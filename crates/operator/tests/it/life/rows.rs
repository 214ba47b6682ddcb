//! The rows of a table of mistakes.

use serde_json::{Value, json};
use skep_converge::Kind;
use skep_testkit::json::with_fields;

/// The condition that is removed when authentication is no longer configured.
pub(super) const AUTH: (&str, &str) = ("AuthConfigured", "AuthInvalid");
/// The event about a mistake without its own condition.
pub(super) const NOT_APPLIED: Option<&str> = Some("NotApplied");

/// A mistake in a spec.
pub(super) struct Row {
    /// What is set in the spec.
    pub(super) wrong: Value,
    /// The conditions that report it, as type, status and reason.
    pub(super) reported: Vec<(&'static str, &'static str, &'static str)>,
    /// The reason of the event, if the mistake blocks the object.
    pub(super) event: Option<&'static str>,
    /// The phase of a blocked object.
    pub(super) phase: &'static str,
    pub(super) fix: Fix,
}

/// How it is fixed.
pub(super) enum Fix {
    /// By reverting what was set.
    Revert,
    /// By creating a missing object.
    Create(Kind, Value),
}

/// A row of conditions that are not met.
pub(super) fn row(
    wrong: Value,
    reported: &[(&'static str, &'static str)],
    event: Option<&'static str>,
) -> Row {
    let reported = reported.iter().map(|(type_, reason)| (*type_, "False", *reason)).collect();
    Row { wrong, reported, event, phase: "Failed", fix: Fix::Revert }
}

impl Row {
    /// It is fixed by creating the missing object.
    pub(super) fn until(self, kind: Kind, name: &str, content: Value) -> Self {
        Self { fix: Fix::Create(kind, object(kind, name, content)), ..self }
    }

    /// The conditions are met, and still report something.
    pub(super) fn holds(mut self) -> Self {
        self.reported.iter_mut().for_each(|(_, status, _)| *status = "True");
        self
    }

    /// The object waits for what is missing.
    pub(super) fn waits(self) -> Self {
        Self { phase: "Pending", ..self }
    }
}

pub(super) fn object(kind: Kind, name: &str, content: Value) -> Value {
    let object = json!({"apiVersion": kind.api_version(), "kind": kind.kind, "metadata": {"name": name}});
    with_fields(object, content)
}
