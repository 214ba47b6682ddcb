//! Results for tokens that are fetched once: those who need the same at the same time wait for one request.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::Instant,
};

use futures::{
    FutureExt,
    future::{BoxFuture, Shared, WeakShared},
};

use crate::{
    cache::{Cache, Key, key},
    limits,
};

/// A request in flight: its result, with the time at which that expires.
pub(crate) type Fetch<V, E> = BoxFuture<'static, Result<(V, Instant), E>>;

/// Cached results, and the requests for those that are not.
pub(crate) struct Fetched<V: Clone, E: Clone> {
    known: Cache<V>,
    /// The tokens whose results were rejected a while ago.
    rejections: Cache<()>,
    in_flight: Mutex<HashMap<Key, WeakShared<Fetch<V, E>>>>,
}

impl<V: Clone, E: Clone> Fetched<V, E> {
    pub(crate) fn new() -> Self {
        Self { known: Cache::new(), rejections: Cache::new(), in_flight: Mutex::default() }
    }

    /// The result for a token: the known one, or that of a request. A failure is that of all who wait for it.
    pub(crate) async fn get(&self, token: &str, fetch: impl FnOnce() -> Fetch<V, E>) -> Result<V, E> {
        if let Some(known) = self.known.get(token, Instant::now()) {
            return Ok(known);
        }
        let (value, until) = self.joined(token, fetch).await?;
        self.known.put(token, value.clone(), until, Instant::now());
        Ok(value)
    }

    /// Forgets a result for a token that was rejected. Returns whether there may be another one: who rejects all of them does not have
    /// a new one fetched each time.
    pub(crate) fn forget(&self, token: &str, rejected: &V) -> bool
    where
        V: PartialEq,
    {
        let now = Instant::now();
        if self.known.get(token, now).is_some_and(|known| known != *rejected) {
            return true;
        }
        if self.rejections.get(token, now).is_some() {
            return false;
        }
        self.rejections.put(token, (), now + limits::REJECTION_PAUSE, now);
        self.known.forget(token);
        true
    }

    /// The request in flight for this token, or a new one. It goes on for as long as one caller waits for it.
    fn joined(&self, token: &str, fetch: impl FnOnce() -> Fetch<V, E>) -> Shared<Fetch<V, E>> {
        let mut in_flight = self.in_flight.lock().unwrap_or_else(PoisonError::into_inner);
        in_flight.retain(|_, fetch| fetch.upgrade().is_some());
        let key = key(token);
        if let Some(running) = in_flight.get(&key).and_then(WeakShared::upgrade) {
            return running;
        }
        let started = fetch().shared();
        in_flight.extend(started.downgrade().map(|weak| (key, weak)));
        started
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::{
            Arc,
            atomic::{AtomicUsize, Ordering},
        },
        time::Duration,
    };

    use futures::future::join_all;
    use tokio::sync::Notify;

    use super::*;

    #[tokio::test]
    async fn a_result_that_is_rejected_is_fetched_again_once_in_a_while() {
        let (fetched, count) = (Fetched::<usize, ()>::new(), Arc::new(AtomicUsize::new(0)));
        let get = || {
            let count = count.clone();
            fetched.get("a", move || {
                let number = count.fetch_add(1, Ordering::Relaxed);
                async move { Ok((number, Instant::now() + Duration::from_secs(60))) }.boxed()
            })
        };
        assert_eq!((get().await, get().await), (Ok(0), Ok(0)));
        assert!(fetched.forget("a", &0));
        assert_eq!(get().await, Ok(1));
        assert!(fetched.forget("a", &0), "there is another by now");
        assert!(!fetched.forget("a", &1));
        assert_eq!(get().await, Ok(1));
    }

    #[tokio::test]
    async fn all_who_wait_for_a_token_share_one_request_and_its_failure() {
        for result in [Ok(7), Err("refused")] {
            let (fetched, count, go) =
                (Fetched::new(), Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
            let fetch = || -> Fetch<i32, &str> {
                let (count, go) = (count.clone(), go.clone());
                async move {
                    count.fetch_add(1, Ordering::Relaxed);
                    go.notified().await;
                    result.map(|value| (value, Instant::now() + Duration::from_secs(60)))
                }
                .boxed()
            };
            let waiting = join_all((0..8).map(|_| fetched.get("a", fetch)));
            let (results, ()) = tokio::join!(waiting, async { go.notify_one() });
            assert_eq!(results, [result; 8]);
            assert_eq!(count.load(Ordering::Relaxed), 1);
        }
    }

    #[tokio::test]
    async fn a_caller_that_leaves_does_not_end_the_request_of_the_others() {
        let fetched = Fetched::<i32, ()>::new();
        let go = Arc::new(Notify::new());
        let fetch = || -> Fetch<i32, ()> {
            let go = go.clone();
            async move {
                go.notified().await;
                Ok((1, Instant::now()))
            }
            .boxed()
        };
        let mut first = Box::pin(fetched.get("a", fetch));
        assert_eq!((&mut first).now_or_never(), None);
        let mut second = Box::pin(fetched.get("a", || unreachable!("a request is in flight")));
        assert_eq!((&mut second).now_or_never(), None);
        drop(first);
        go.notify_one();
        assert_eq!(second.await, Ok(1));
        assert_eq!(fetched.in_flight.lock().unwrap().values().filter_map(WeakShared::upgrade).count(), 0);
    }
}
