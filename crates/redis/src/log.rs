//! A log of failures that a Redis which is down for hours does not fill.

use std::sync::{Mutex, PoisonError};

use tokio::time::Instant;
use tracing::warn;

use crate::limits;

/// A log that drops lines which follow another one too soon, and counts them.
#[derive(Default)]
pub(crate) struct ThrottledLog(Mutex<Throttle>);

#[derive(Default)]
struct Throttle {
    last: Option<Instant>,
    suppressed: u64,
}

impl ThrottledLog {
    pub(crate) fn warn(&self, field: &str, place: &str, error: &str) {
        let mut throttle = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if throttle.last.is_some_and(|last| last.elapsed() < limits::LOG_PAUSE) {
            throttle.suppressed += 1;
            return;
        }
        let suppressed = throttle.suppressed;
        *throttle = Throttle { last: Some(Instant::now()), suppressed: 0 };
        warn!(field, address = place, error, suppressed, "Redis unavailable");
    }

    /// Counts a failure whose cause another line has.
    pub(crate) fn suppress(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).suppressed += 1;
    }
}
