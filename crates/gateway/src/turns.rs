//! Places that requests wait for, of which one caller has only some: the others do not wait behind all of its requests.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Places for requests that have a key, such as their caller. There is an entry for each key that has or waits for one.
pub struct Turns<K>(Arc<Shared<K>>);

struct Shared<K> {
    all: Arc<Semaphore>,
    of_a_key: usize,
    keys: Mutex<HashMap<K, Arc<Semaphore>>>,
}

/// The place of one request.
pub struct Turn<K: Eq + Hash> {
    shared: Arc<Shared<K>>,
    key: K,
    /// Of its key, and of all.
    places: [Option<OwnedSemaphorePermit>; 2],
}

impl<K: Clone + Eq + Hash> Turns<K> {
    /// So many places, and so many for one key.
    pub fn new(all: usize, of_a_key: usize) -> Self {
        let all = Arc::new(Semaphore::new(all.min(Semaphore::MAX_PERMITS)));
        Self(Arc::new(Shared { all, of_a_key, keys: Mutex::default() }))
    }

    /// Waits for a place of this key, and then for one of all.
    pub async fn take(&self, key: K) -> Turn<K> {
        let new = || Arc::new(Semaphore::new(self.0.of_a_key));
        let own = self.0.lock().entry(key.clone()).or_insert_with(new).clone();
        // Made before it waits, so that one that is dropped meanwhile leaves nothing behind.
        let mut turn = Turn { shared: self.0.clone(), key, places: [None, None] };
        for (place, semaphore) in turn.places.iter_mut().zip([own, self.0.all.clone()]) {
            *place = semaphore.acquire_owned().await.ok();
        }
        turn
    }
}

impl<K> Shared<K> {
    fn lock(&self) -> MutexGuard<'_, HashMap<K, Arc<Semaphore>>> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Eq + Hash> Drop for Turn<K> {
    fn drop(&mut self) {
        self.places = [None, None];
        let mut keys = self.shared.lock();
        if keys.get(&self.key).is_some_and(|own| Arc::strong_count(own) == 1) {
            keys.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn requests_of_one_key_take_turns_and_leave_nothing_behind() {
        let turns = Turns::new(usize::MAX, 1);
        let first = turns.take("a").await;
        let mut second = Box::pin(turns.take("a"));
        let mut dropped = Box::pin(turns.take("a"));
        assert!((&mut second).now_or_never().is_none() && (&mut dropped).now_or_never().is_none());
        drop(turns.take("b").now_or_never().expect("another key waits for nothing"));
        drop(dropped);
        drop(first);
        drop(second.await);
        assert!(turns.0.lock().is_empty());
    }

    #[tokio::test]
    async fn a_key_with_many_requests_leaves_places_to_others() {
        let turns = Turns::new(3, 2);
        let held = [turns.take("a").await, turns.take("a").await];
        assert!(turns.take("a").now_or_never().is_none(), "it has its part");
        let other = turns.take("b").now_or_never().expect("one is left");
        let mut third = Box::pin(turns.take("c"));
        assert!((&mut third).now_or_never().is_none(), "all are taken");
        let mut late = Box::pin(turns.take("a"));
        assert!((&mut late).now_or_never().is_none());
        drop(held);
        assert!((&mut third).now_or_never().is_some());
        drop((other, (&mut late).now_or_never().expect("one is free")));
        assert!(turns.0.lock().is_empty());
    }
}
