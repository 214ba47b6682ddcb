//! The levels of log messages.

/// The levels of MCP, which are those of syslog, the least severe first.
const NAMES: [&str; 8] = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

/// A level. What is more severe is greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Level(usize);

impl Level {
    /// The level of this name.
    pub(super) fn named(name: &str) -> Option<Self> {
        NAMES.iter().position(|known| *known == name).map(Self)
    }

    /// Its name.
    pub(super) fn name(self) -> &'static str {
        NAMES[self.0]
    }
}
