//! The levels of log messages.

/// A level of log messages, ordered by importance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Level(usize);

const LEVELS: [&str; 8] = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

impl Level {
    pub(crate) fn named(name: &str) -> Option<Self> {
        LEVELS.iter().position(|level| *level == name).map(Self)
    }

    pub(crate) fn name(self) -> &'static str {
        LEVELS.get(self.0).copied().unwrap_or_default()
    }
}
