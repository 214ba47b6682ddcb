//! The connections of users to identity providers, for people who watch an endpoint with an authorization server: never a token,
//! nor the id of a session.

use std::{
    cmp::Reverse,
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use tokio::{
    sync::Mutex as Turn,
    time::{Instant, timeout},
};

use super::CallLog;
use crate::{Connection, ConnectionSource, Connections, limits, truncate::truncate};

impl Connections {
    /// What another process has sent, and may have made up: as few and as short as our own.
    fn bounded(self) -> Self {
        let cut = |text: &str| Box::from(&*truncate(text));
        let mut shown = self.shown;
        shown.sort_by_key(|one| Reverse(one.since));
        shown.truncate(limits::CONNECTIONS_SHOWN);
        for Connection { user, provider, account, .. } in &mut shown {
            (*user, *provider, *account) = (cut(user), cut(provider), cut(account));
        }
        Self { shown, ..self }
    }

    /// Those of several processes, which share them or have their own.
    fn merged(all: &[Self]) -> Option<Self> {
        let mut known = all.iter().filter(|one| one.available);
        let Some(first) = known.clone().find(|one| one.shared).or_else(|| known.next()) else {
            return all.first().cloned();
        };
        let mut merged = first.clone();
        if !first.shared {
            for other in known {
                merged.total = merged.total.saturating_add(other.total);
                merged.shown.extend(other.shown.iter().cloned());
            }
        }
        Some(merged.bounded())
    }
}

/// What a log knows of connections.
#[derive(Default)]
pub(super) struct Known {
    /// The authorization server of this process, while it runs.
    source: Mutex<Option<Weak<dyn ConnectionSource>>>,
    /// What it has reported, and when: it is not queried more often, however many watch.
    last: Turn<Option<(Instant, Connections)>>,
    /// Those that other processes have reported, by their addresses.
    others: Mutex<BTreeMap<String, Connections>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl CallLog {
    /// Lets those who watch see the connections of the users of a server, for as long as it is kept elsewhere.
    pub fn set_connection_source(&self, source: Arc<dyn ConnectionSource>) {
        *lock(&self.connections.source) = Some(Arc::downgrade(&source));
    }

    /// The connections that another process has, or that it has ended.
    pub fn set_connections(&self, process: &str, connections: Option<Connections>) {
        let mut others = lock(&self.connections.others);
        match connections {
            Some(connections) => others.insert(process.to_owned(), connections.bounded()),
            None => others.remove(process),
        };
    }

    /// The connections of all processes. None if there is no authorization server.
    pub async fn connections(&self) -> Option<Connections> {
        let own = self.own_connections().await;
        let others: Vec<Connections> = lock(&self.connections.others).values().cloned().collect();
        Connections::merged(&[Vec::from_iter(own), others].concat())
    }

    /// Those of this process, as they were a short time ago.
    pub(super) async fn own_connections(&self) -> Option<Connections> {
        let source = lock(&self.connections.source).as_ref().and_then(Weak::upgrade)?;
        let mut last = self.connections.last.lock().await;
        if let Some((time, known)) = &*last
            && time.elapsed() < limits::CONNECTIONS_AGE
        {
            return Some(known.clone());
        }
        let found = timeout(limits::CONNECTIONS_WAIT, source.connections(limits::CONNECTIONS_SHOWN)).await;
        // What was known before may not be true any more.
        let found = found.ok().and_then(Result::ok).unwrap_or_default().bounded();
        *last = Some((Instant::now(), found.clone()));
        Some(found)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    use futures::{FutureExt, future::BoxFuture};
    use jiff::Timestamp;

    use super::*;
    use crate::ProviderTokenError;

    fn connection(user: &str, second: i64) -> Connection {
        Connection {
            user: user.into(),
            provider: "corp".into(),
            account: "a".into(),
            since: Timestamp::from_second(second).ok(),
            until: None,
            renewed: true,
        }
    }

    fn connections(shared: bool, total: u64, users: &[&str]) -> Connections {
        let shown = users.iter().zip(0..).map(|(user, second)| connection(user, second)).collect();
        Connections { available: true, shared, total, shown }
    }

    fn users(connections: &Connections) -> Vec<&str> {
        connections.shown.iter().map(|one| &*one.user).collect()
    }

    /// An authorization server with one connection, which counts how often it is queried.
    #[derive(Default)]
    pub(crate) struct FakeSource {
        queries: AtomicUsize,
        pub(crate) is_down: AtomicBool,
    }

    impl ConnectionSource for FakeSource {
        fn connections(&self, most: usize) -> BoxFuture<'_, Result<Connections, ProviderTokenError>> {
            assert_eq!(most, limits::CONNECTIONS_SHOWN);
            self.queries.fetch_add(1, Ordering::Relaxed);
            let found = match self.is_down.load(Ordering::Relaxed) {
                true => Err(ProviderTokenError::Unavailable),
                false => Ok(connections(true, 7, &["ann"])),
            };
            async { found }.boxed()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_source_is_queried_now_and_then_however_many_watch() {
        let (log, fake) = (CallLog::new(), Arc::new(FakeSource::default()));
        assert_eq!(log.connections().await, None, "there is no authorization server");
        log.set_connection_source(fake.clone());
        let views = futures::future::join_all((0..100).map(|_| log.connections())).await;
        assert!(views.iter().all(|view| *view == Some(connections(true, 7, &["ann"]))));
        assert_eq!(fake.queries.load(Ordering::Relaxed), 1);
        fake.is_down.store(true, Ordering::Relaxed);
        tokio::time::advance(limits::CONNECTIONS_AGE).await;
        assert_eq!(log.connections().await, Some(Connections::default()), "they are not known now");
        assert_eq!(fake.queries.load(Ordering::Relaxed), 2);
        drop(fake);
        assert_eq!(log.connections().await, None, "it has ended");
    }

    #[tokio::test]
    async fn replicas_that_share_their_storage_are_counted_once_and_others_are_added_up() {
        let log = CallLog::new();
        log.set_connections("a", Some(connections(false, 2, &["ann", "bob"])));
        log.set_connections("b", Some(connections(false, 1, &["eve"])));
        log.set_connections("c", Some(Connections::default()));
        let merged = log.connections().await.unwrap();
        assert_eq!((merged.total, users(&merged)), (3, vec!["bob", "ann", "eve"]), "the newest first");
        log.set_connections("a", Some(connections(true, 2, &["ann", "bob"])));
        log.set_connections("b", Some(connections(true, 2, &["ann", "bob"])));
        let merged = log.connections().await.unwrap();
        assert_eq!((merged.total, users(&merged)), (2, vec!["bob", "ann"]));
        for process in ["a", "b"] {
            log.set_connections(process, None);
        }
        assert_eq!(log.connections().await, Some(Connections::default()));
    }

    #[tokio::test]
    async fn connections_of_a_hostile_process_are_few_and_short() {
        let log = CallLog::new();
        let long = "x".repeat(10_000);
        let hostile = connections(false, u64::MAX, &vec![&*long; 1000]);
        log.set_connections("a", Some(hostile.clone()));
        log.set_connections("b", Some(hostile));
        let merged = log.connections().await.unwrap();
        assert_eq!((merged.total, merged.shown.len()), (u64::MAX, limits::CONNECTIONS_SHOWN));
        assert!(merged.shown.iter().all(|one| one.user.len() <= limits::LABEL_BYTES));
    }
}
