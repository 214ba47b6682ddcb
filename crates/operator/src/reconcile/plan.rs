//! What a reconciliation would write.

use std::time::Duration;

use skep_converge::{Planned, Write};

use super::Event;

/// What would be done for one object.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// Whether the object exists.
    pub subject: Subject,
    /// What would be written, in this order.
    pub writes: Vec<Planned>,
    /// What is not written yet, because it would replace pods of another operator.
    pub held: Vec<Planned>,
    /// The events that would be published.
    pub events: Vec<Event>,
    /// When to reconcile again, because a field that another writer changes back is left alone until then.
    pub again: Option<Duration>,
    /// Whether a status was written.
    pub reported: bool,
    /// What keeps the object from being applied. Existing pods keep running.
    pub problem: Option<String>,
}

/// The object that a plan is for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Subject {
    /// It was deleted.
    #[default]
    Absent,
    /// It cannot be parsed, for this reason.
    Unreadable(String),
    /// It exists.
    Present,
}

/// A plan in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verdict {
    /// Nothing would be written.
    Settled,
    /// Nothing would be written now: a change waits, because it would replace pods of another operator.
    Waiting,
    /// Only its status or its metadata would be written.
    Status,
    /// Fields would change their owner, and no child would change.
    TakeOver,
    /// Children would be created, changed or deleted.
    Change,
    /// The object, or something that it refers to, must change first.
    Blocked,
    /// The object cannot be parsed.
    Unreadable,
}

impl Verdict {
    /// The verdict in one word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Settled => "settled",
            Self::Waiting => "waiting",
            Self::Status => "status",
            Self::TakeOver => "take-over",
            Self::Change => "change",
            Self::Blocked => "blocked",
            Self::Unreadable => "unreadable",
        }
    }
}

impl Plan {
    /// The plan in one word.
    pub fn verdict(&self) -> Verdict {
        let changes = |planned: &Planned| match planned.write {
            Write::Create | Write::Delete => true,
            Write::Apply => !planned.changes.is_empty(),
            Write::Report | Write::Mark => false,
        };
        match self {
            Self { subject: Subject::Unreadable(_), .. } => Verdict::Unreadable,
            Self { problem: Some(_), .. } => Verdict::Blocked,
            _ if self.writes.iter().any(changes) => Verdict::Change,
            _ if self
                .writes
                .iter()
                .any(|planned| planned.write == Write::Apply || !planned.from.is_empty()) =>
            {
                Verdict::TakeOver
            }
            _ if !self.writes.is_empty() => Verdict::Status,
            _ if !self.held.is_empty() => Verdict::Waiting,
            _ => Verdict::Settled,
        }
    }

    /// Whether running pods would be replaced.
    pub fn rolls_pods(&self) -> bool {
        self.writes.iter().any(Planned::rolls_pods)
    }
}
