//! What a table of mistakes consists of.

use serde_json::{Value, json};
use skep_converge::Kind;
use skep_testkit::json::with_fields;

/// The condition that goes when there is nothing to authenticate any more.
pub(super) const AUTH: (&str, &str) = ("AuthConfigured", "AuthInvalid");
/// The event of what has no condition of its own.
pub(super) const NOT_APPLIED: Option<&str> = Some("NotApplied");

/// A way in which a spec can be wrong.
pub(super) struct Row {
    /// What is set in the spec.
    pub(super) wrong: Value,
    /// The conditions that tell it, as type, status and reason.
    pub(super) told: Vec<(&'static str, &'static str, &'static str)>,
    /// The reason of the event, if it keeps the object from having what it asks for.
    pub(super) event: Option<&'static str>,
    /// The phase of an object that is kept from having what it asks for.
    pub(super) phase: &'static str,
    pub(super) mend: Mend,
}

/// How it is mended.
pub(super) enum Mend {
    /// By taking back what was set.
    TakeBack,
    /// By an object that was missing.
    Create(Kind, Value),
}

/// A row of conditions that do not hold.
pub(super) fn row(wrong: Value, told: &[(&'static str, &'static str)], event: Option<&'static str>) -> Row {
    let told = told.iter().map(|(type_, reason)| (*type_, "False", *reason)).collect();
    Row { wrong, told, event, phase: "Failed", mend: Mend::TakeBack }
}

impl Row {
    /// It is mended by an object that was missing.
    pub(super) fn until(self, kind: Kind, name: &str, content: Value) -> Self {
        Self { mend: Mend::Create(kind, object(kind, name, content)), ..self }
    }

    /// The conditions hold, and tell something all the same.
    pub(super) fn holds(mut self) -> Self {
        self.told.iter_mut().for_each(|(_, status, _)| *status = "True");
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
