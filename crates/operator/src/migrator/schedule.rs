//! The schedule of CRDs to process.

use std::{collections::HashMap, future, time::Duration};

use tokio::time::{Instant, sleep_until};

/// The back-off after a first failure. It doubles with each.
const FIRST_PAUSE: Duration = Duration::from_secs(5);
/// The longest back-off.
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

/// The CRDs to process.
#[derive(Default)]
pub(super) struct Schedule {
    due: HashMap<String, Instant>,
    failures: HashMap<String, u32>,
}

impl Schedule {
    /// Schedules a changed CRD, to be processed from then on.
    pub(super) fn event(&mut self, crd: String, at: Instant) {
        self.due.insert(crd, at);
    }

    /// The next CRD, when it is due. Waits forever if there is none.
    pub(super) async fn next(&mut self) -> String {
        let Some((crd, at)) = self.due.iter().min_by_key(|(_, at)| **at) else {
            return future::pending().await;
        };
        let (crd, at) = (crd.clone(), *at);
        sleep_until(at).await;
        self.due.remove(&crd);
        crd
    }

    pub(super) fn done(&mut self, crd: &str) {
        self.failures.remove(crd);
    }

    /// Schedules it again after a back-off, which is returned.
    pub(super) fn failed(&mut self, crd: &str, now: Instant) -> Duration {
        let failures = self.failures.entry(crd.into()).or_default();
        let pause = FIRST_PAUSE.saturating_mul(1 << (*failures).min(16)).min(LONGEST_PAUSE);
        *failures = failures.saturating_add(1);
        self.due.insert(crd.into(), now + pause);
        pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_first_due_is_processed_first_and_each_once() {
        let (mut schedule, now) = (Schedule::default(), Instant::now());
        schedule.event("b".into(), now + Duration::from_millis(2));
        schedule.event("a".into(), now + Duration::from_millis(90));
        schedule.event("a".into(), now + Duration::from_millis(1));
        assert_eq!([schedule.next().await, schedule.next().await], ["a", "b"]);
        let nothing = tokio::time::timeout(Duration::from_millis(20), schedule.next()).await;
        assert!(nothing.is_err(), "{nothing:?}");
    }

    #[test]
    fn the_back_off_grows_until_a_success() {
        let (mut schedule, now) = (Schedule::default(), Instant::now());
        let pauses: Vec<u64> = (0..9).map(|_| schedule.failed("a", now).as_secs()).collect();
        assert_eq!(pauses, [5, 10, 20, 40, 80, 160, 300, 300, 300]);
        schedule.done("a");
        assert_eq!(schedule.failed("a", now), FIRST_PAUSE);
    }
}
