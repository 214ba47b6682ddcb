//! What keeps an object from being applied.

use std::fmt;

use skep_api::{conditions::Reason, events::EventReason};
use skep_config::{FieldError, FieldPath};

/// A mistake in a spec, or something that it refers to and that is missing. Existing pods keep running.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The field at fault.
    pub field: FieldPath,
    /// The condition that reports it. Without one, `Ready` does.
    pub reason: Option<Reason>,
    /// The event about it, where its reason is not the condition's.
    pub event: Option<EventReason>,
    /// What is wrong and what to do, without the field's name.
    pub message: String,
    /// Whether it is expected to pass without a change to the object.
    pub transient: bool,
}

impl Problem {
    /// A problem that only another spec solves.
    pub fn new(error: impl Into<FieldError>) -> Self {
        let FieldError { field, message } = error.into();
        Self { field, reason: None, event: None, message, transient: false }
    }

    /// A problem of this field.
    pub fn of(field: impl Into<FieldPath>, message: impl Into<String>) -> Self {
        Self::new(FieldError::new(field, message))
    }

    /// The same problem, reported by this condition.
    #[must_use]
    pub fn reported_as(self, reason: impl Into<Reason>) -> Self {
        Self { reason: Some(reason.into()), ..self }
    }

    /// The same problem, published by this event.
    #[must_use]
    pub fn published_as(self, event: EventReason) -> Self {
        Self { event: Some(event), ..self }
    }

    /// The same problem, which is expected to pass.
    #[must_use]
    pub fn transient(self) -> Self {
        Self { transient: true, ..self }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        FieldError { field: self.field.clone(), message: self.message.clone() }.fmt(f)
    }
}
