//! How long calls have waited for input of the user.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

/// The time in which at least one call waited for input.
#[derive(Default)]
pub(super) struct InputTime(Mutex<Waits>);

#[derive(Default)]
struct Waits {
    /// How many calls wait, and since when any does.
    waiting: usize,
    since: Option<Instant>,
    before: Duration,
}

/// A call that waits, as long as it has this.
pub(super) struct Wait<'a>(&'a InputTime);

impl InputTime {
    pub(super) fn wait(&self) -> Wait<'_> {
        let mut waits = self.lock();
        waits.waiting += 1;
        waits.since.get_or_insert_with(Instant::now);
        Wait(self)
    }

    pub(super) fn total(&self) -> Duration {
        let waits = self.lock();
        waits.before + waits.since.map(|since| since.elapsed()).unwrap_or_default()
    }

    fn lock(&self) -> MutexGuard<'_, Waits> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        let mut waits = self.0.lock();
        waits.waiting -= 1;
        if waits.waiting == 0 {
            let waited = waits.since.take().map(|since| since.elapsed());
            waits.before += waited.unwrap_or_default();
        }
    }
}
