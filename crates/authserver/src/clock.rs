//! The time.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// The time of this process. Tests move it.
#[derive(Clone, Default)]
pub(crate) struct Clock(Arc<AtomicU64>);

impl Clock {
    /// The seconds since 1970.
    pub(crate) fn now(&self) -> u64 {
        self.precise().as_secs()
    }

    /// The time since 1970.
    pub(crate) fn precise(&self) -> Duration {
        let moved = Duration::from_secs(self.0.load(Ordering::Relaxed));
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default() + moved
    }

    /// Moves the time.
    #[cfg(test)]
    pub(crate) fn advance(&self, time: Duration) {
        self.0.fetch_add(time.as_secs(), Ordering::Relaxed);
    }
}
