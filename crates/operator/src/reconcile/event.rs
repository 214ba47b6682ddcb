//! Kubernetes events about an object.

use k8s_openapi::api::core::v1::ObjectReference;
use kube::{
    Client,
    runtime::events::{self, EventType, Recorder, Reporter},
};
use skep_api::events::{EventReason, Severity};
use skep_converge::Mode;
use tracing::warn;

use super::Problem;

/// An event, before it is published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Whether it needs attention.
    pub severity: Severity,
    /// Why, in one word.
    pub reason: &'static str,
    /// The action, in one word.
    pub action: &'static str,
    /// What happened, in a sentence.
    pub note: String,
}

impl Event {
    /// An event with this reason.
    pub fn new(reason: EventReason, note: impl Into<String>) -> Self {
        Self {
            severity: reason.severity(),
            reason: reason.as_str(),
            action: reason.action(),
            note: note.into(),
        }
    }

    /// The event about a problem, and how many others there are. Its reason is that of the condition that reports the
    /// problem.
    pub(super) fn about(problem: &Problem, others: usize) -> Self {
        let note = match others {
            0 => problem.to_string(),
            _ => format!("{problem}; and {others} more"),
        };
        match (problem.event, problem.reason) {
            (Some(event), _) => Self::new(event, note),
            (None, Some(reason)) => {
                Self { severity: Severity::Warning, reason: reason.reason, action: reason.action, note }
            }
            (None, None) => Self::new(EventReason::NotApplied, note),
        }
    }

    /// The same event of an object with pods, which are not touched.
    #[must_use]
    pub(super) fn keeping_pods(self) -> Self {
        Self { note: format!("{}; existing pods keep running", self.note), ..self }
    }
}

/// The longest note that the API server accepts.
const MAX_NOTE: usize = 1024;

/// Publishes the events of one controller, unless it only plans.
pub(crate) struct EventPublisher(Option<Recorder>);

impl EventPublisher {
    pub(crate) fn new(client: Client, controller: &str, mode: Mode) -> Self {
        let reporter = Reporter { controller: controller.into(), instance: None };
        Self((mode == Mode::Write).then(|| Recorder::new(client, reporter)))
    }

    /// Publishes events, and returns those that are only planned. One that cannot be published delays nothing.
    pub(crate) async fn publish(&self, about: &ObjectReference, events: Vec<Event>) -> Vec<Event> {
        let Some(recorder) = &self.0 else { return events };
        for event in events {
            let mut note = event.note;
            note.truncate(note.floor_char_boundary(MAX_NOTE));
            let published = events::Event {
                type_: match event.severity {
                    Severity::Normal => EventType::Normal,
                    Severity::Warning => EventType::Warning,
                },
                reason: event.reason.into(),
                note: Some(note),
                action: event.action.into(),
                secondary: None,
            };
            if let Err(error) = recorder.publish(&published, about).await {
                warn!(reason = event.reason, %error, "cannot publish the event");
            }
        }
        Vec::new()
    }
}
