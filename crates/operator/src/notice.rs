//! Kubernetes events: what happened, for the people who look at an object.

use k8s_openapi::api::core::v1::ObjectReference;
use kube::{
    Client,
    runtime::events::{Event, EventType, Recorder, Reporter},
};
use skep_converge::Mode;
use tracing::warn;

/// Something to tell about an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// Whether somebody should look into it.
    pub severity: Severity,
    /// Why, in one word.
    pub reason: String,
    /// What was being done, in one word.
    pub action: &'static str,
    /// What happened, in a sentence.
    pub note: String,
}

impl Notice {
    /// Something that keeps an object from becoming what its spec says. `told` is what its status said before, so a
    /// problem that stays is told once.
    pub(crate) fn problem(
        reason: impl Into<String>,
        action: &'static str,
        message: &str,
        told: Option<&str>,
    ) -> Option<Self> {
        let note = format!("{message}; what runs goes on as it is");
        let notice = Self { severity: Severity::Warning, reason: reason.into(), action, note };
        (told != Some(message)).then_some(notice)
    }
}

/// How much a notice matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// It is as it should be.
    Normal,
    /// Somebody should look into it.
    Warning,
}

/// The API server takes no longer notes.
const LONGEST_NOTE: usize = 1024;

/// Publishes notices of one controller, unless it only plans.
pub(crate) struct Notices(Option<Recorder>);

impl Notices {
    pub(crate) fn new(client: Client, controller: &str, mode: Mode) -> Self {
        let reporter = Reporter { controller: controller.into(), instance: None };
        Self((mode == Mode::Write).then(|| Recorder::new(client, reporter)))
    }

    /// Publishes notices, and returns those that are only planned. One that cannot be told holds nothing up.
    pub(crate) async fn publish(&self, about: &ObjectReference, notices: Vec<Notice>) -> Vec<Notice> {
        let Some(recorder) = &self.0 else { return notices };
        for notice in notices {
            let mut note = notice.note;
            note.truncate(note.floor_char_boundary(LONGEST_NOTE));
            let event = Event {
                type_: match notice.severity {
                    Severity::Normal => EventType::Normal,
                    Severity::Warning => EventType::Warning,
                },
                reason: notice.reason.clone(),
                note: Some(note),
                action: notice.action.into(),
                secondary: None,
            };
            if let Err(error) = recorder.publish(&event, about).await {
                warn!(reason = notice.reason, %error, "an event cannot be published");
            }
        }
        Vec::new()
    }
}
