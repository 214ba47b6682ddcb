//! What an operator should reach.

use std::fmt;

/// A bound that a figure should keep.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Goal {
    /// No less than this.
    AtLeast(f64),
    /// No more than this.
    AtMost(f64),
}

impl Goal {
    /// Watching, computing and comparing may cost as much as this leaves.
    pub(super) const THROUGHPUT: Self = Self::AtLeast(0.7);
    /// Writes for each server: seven objects, a finalizer, a status, and two to spare.
    pub(super) const WRITES: Self = Self::AtMost(11.0);
    /// Nothing is written when nothing changes.
    pub(super) const NONE: Self = Self::AtMost(0.0);

    /// Megabytes of memory for so many servers. There is no goal for more than ten thousand.
    pub(super) fn memory(servers: usize) -> Option<Self> {
        let bounds = [(200, 25.0), (1_000, 50.0), (10_000, 200.0)];
        bounds.into_iter().find(|(most, _)| servers <= *most).map(|(_, bound)| Self::AtMost(bound))
    }

    /// Whether the figure keeps it, as a word for the table.
    pub(super) fn verdict(self, figure: f64) -> &'static str {
        let met = match self {
            Self::AtLeast(bound) => figure >= bound,
            Self::AtMost(bound) => figure <= bound,
        };
        if met { " met" } else { " missed" }
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtLeast(bound) => write!(f, ">= {bound}"),
            Self::AtMost(bound) if *bound == 0.0 => write!(f, "0"),
            Self::AtMost(bound) => write!(f, "<= {bound}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_goal_is_met_on_its_bound_and_missed_beyond() {
        assert_eq!(Goal::THROUGHPUT.verdict(0.7), " met");
        assert_eq!(Goal::THROUGHPUT.verdict(0.69), " missed");
        assert_eq!(Goal::WRITES.verdict(11.0), " met");
        assert_eq!(Goal::NONE.verdict(1.0), " missed");
    }

    #[test]
    fn memory_may_grow_with_the_number_of_servers() {
        assert_eq!(Goal::memory(200), Some(Goal::AtMost(25.0)));
        assert_eq!(Goal::memory(201), Some(Goal::AtMost(50.0)));
        assert_eq!(Goal::memory(10_000), Some(Goal::AtMost(200.0)));
        assert_eq!(Goal::memory(10_001), None);
    }
}
