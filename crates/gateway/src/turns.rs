//! One request at a time for each session that is to be restored: the others wait for its result.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::OwnedMutexGuard;

type Locks = HashMap<Box<str>, Arc<tokio::sync::Mutex<()>>>;

/// The sessions that are being restored. There are as many as requests that wait for one.
#[derive(Clone, Default)]
pub(super) struct Turns(Arc<Mutex<Locks>>);

/// The turn of one request.
pub(super) struct Turn {
    turns: Turns,
    key: Box<str>,
    guard: Option<OwnedMutexGuard<()>>,
}

impl Turns {
    /// Waits until no other request restores the session of this key.
    pub(super) async fn take(&self, key: &str) -> Turn {
        let lock = self.lock().entry(key.into()).or_default().clone();
        // Made before it waits, so that one that is dropped meanwhile leaves nothing behind.
        let mut turn = Turn { turns: self.clone(), key: key.into(), guard: None };
        turn.guard = Some(lock.lock_owned().await);
        turn
    }

    fn lock(&self) -> MutexGuard<'_, Locks> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        drop(self.guard.take());
        let mut locks = self.turns.lock();
        if locks.get(&self.key).is_some_and(|lock| Arc::strong_count(lock) == 1) {
            locks.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn requests_of_one_session_take_turns_and_leave_nothing_behind() {
        let turns = Turns::default();
        let first = turns.take("a").await;
        let mut second = Box::pin(turns.take("a"));
        let mut dropped = Box::pin(turns.take("a"));
        assert!((&mut second).now_or_never().is_none() && (&mut dropped).now_or_never().is_none());
        drop(turns.take("b").now_or_never().expect("another session waits for nothing"));
        drop(dropped);
        drop(first);
        drop(second.await);
        assert!(turns.lock().is_empty());
    }
}
