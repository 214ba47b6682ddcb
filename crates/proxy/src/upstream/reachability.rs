//! Whether a server can be reached, by its responses.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

/// When the server last responded, and since when it does not. Times are milliseconds since the proxy started, and more
/// than zero; zero means never.
pub(super) struct Reachability {
    began: Instant,
    answered: AtomicU64,
    missing: AtomicU64,
}

impl Reachability {
    pub(super) fn new() -> Self {
        Self { began: Instant::now(), answered: AtomicU64::new(0), missing: AtomicU64::new(0) }
    }

    /// The server has responded.
    pub(super) fn record_response(&self) {
        // Most requests only read both, so that they do not invalidate the cache line for others.
        let now = self.now();
        if self.answered.load(Ordering::Relaxed) != now {
            self.answered.store(now, Ordering::Relaxed);
        }
        if self.missing.load(Ordering::Relaxed) != 0 {
            self.missing.store(0, Ordering::Relaxed);
        }
    }

    /// The server has not responded. Returns for how long it has been missing.
    pub(super) fn record_failure(&self) -> Duration {
        let now = self.now();
        match self.missing.compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => Duration::ZERO,
            Err(since) => Duration::from_millis(now.saturating_sub(since)),
        }
    }

    /// The server restarts: the time for which it is missing counts from now.
    pub(super) fn restart(&self) {
        self.missing.store(self.now(), Ordering::Relaxed);
    }

    pub(super) fn is_missing(&self) -> bool {
        self.missing.load(Ordering::Relaxed) != 0
    }

    /// Whether it has responded lately.
    pub(super) fn answered_within(&self, time: Duration) -> bool {
        let answered = self.answered.load(Ordering::Relaxed);
        answered != 0 && Duration::from_millis(self.now().saturating_sub(answered)) < time
    }

    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX).saturating_add(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_missing_from_its_first_failure_until_it_responds() {
        let reachability = Reachability::new();
        assert!(!reachability.is_missing() && !reachability.answered_within(Duration::MAX));
        assert_eq!(reachability.record_failure(), Duration::ZERO);
        std::thread::sleep(Duration::from_millis(5));
        assert!(reachability.record_failure() >= Duration::from_millis(4) && reachability.is_missing());
        reachability.restart();
        assert!(reachability.record_failure() < Duration::from_secs(60) && reachability.is_missing());
        reachability.record_response();
        assert!(!reachability.is_missing() && reachability.answered_within(Duration::from_secs(60)));
        assert!(!reachability.answered_within(Duration::ZERO));
    }
}
