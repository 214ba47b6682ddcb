//! Sessions in the memory of one proxy.

use std::{
    collections::HashMap,
    hash::{BuildHasher, RandomState},
    net::IpAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use futures::future::{Fuse, FutureExt};

use super::{
    Session,
    holders::{Holders, Shares},
};
use crate::{
    identity::{Holder, Owner},
    limits,
};

/// Locks are held for one look-up; this many let others pass meanwhile.
const SHARDS: usize = 16;

/// What is kept of a session.
pub trait Kept: Clone {
    /// Who started it, if that is known.
    fn owner(&self) -> Option<Owner>;

    /// How many bytes it keeps beside its own size.
    fn bytes(&self) -> usize;

    /// Drops what it can do without: there are too many bytes.
    fn shed(&mut self);

    /// Releases what it has elsewhere, as it makes room for others.
    fn evict(&self) {}
}

impl Kept for Session {
    fn owner(&self) -> Option<Owner> {
        self.owner
    }

    fn bytes(&self) -> usize {
        self.initialize.as_ref().map_or(0, |initialize| initialize.len())
    }

    /// It cannot be restored then.
    fn shed(&mut self) {
        self.initialize = None;
    }
}

struct Entry<S> {
    session: S,
    holder: Holder,
    last_used: Instant,
}

/// The sessions of one proxy, in its memory. Idle ones expire, and so does the one that was idle for longest of a holder
/// that has too many.
pub struct Memory<S = Session> {
    shards: [Mutex<HashMap<Arc<str>, Entry<S>>>; SHARDS],
    hasher: RandomState,
    holders: Holders,
    count: AtomicUsize,
    /// The bytes that sessions store.
    stored: AtomicUsize,
    life: Duration,
}

/// There are as many sessions as there may be.
#[derive(Debug)]
pub struct Full;

impl<S: Kept> Memory<S> {
    /// Sessions that expire when they are not used for this long.
    pub fn new(life: Duration) -> Self {
        Self::with_shares(life, Shares::default())
    }

    /// The same, of which one holder may have only so many.
    pub fn with_shares(life: Duration, shares: Shares) -> Self {
        Self {
            shards: std::array::from_fn(|_| Mutex::default()),
            hasher: RandomState::new(),
            holders: Holders::new(shares),
            count: AtomicUsize::new(0),
            stored: AtomicUsize::new(0),
            life,
        }
    }

    /// The session of that id, which counts as a use.
    pub fn get(&self, id: &str) -> Option<S> {
        let mut shard = self.shard(id);
        let entry = shard.get_mut(id)?;
        entry.last_used = Instant::now();
        Some(entry.session.clone())
    }

    /// Whether the session exists, which does not count as a use.
    pub fn knows(&self, id: &str) -> bool {
        self.shard(id).contains_key(id)
    }

    /// Adds a session of a client at this address, in place of one of that id.
    pub fn put(&self, id: &str, session: S, peer: IpAddr) -> Result<(), Full> {
        let holder = Holder::new(session.owner(), peer);
        self.remove(id);
        if self.count.fetch_add(1, Ordering::Relaxed) >= limits::SESSIONS {
            self.count.fetch_sub(1, Ordering::Relaxed);
            return Err(Full);
        }
        let entry = self.counted(Entry { session, holder, last_used: Instant::now() });
        let id: Arc<str> = id.into();
        if let Some(replaced) = self.shard(&id).insert(id.clone(), entry) {
            // Another request added it meanwhile.
            self.uncount(&replaced);
        }
        if let Some(all) = self.holders.add(holder, &id) {
            self.evict(all);
        }
        Ok(())
    }

    /// Changes what is known of a session, unless it has ended meanwhile.
    pub fn change(&self, id: &str, session: S) {
        if let Some(known) = self.shard(id).get_mut(id) {
            self.stored.fetch_sub(known.session.bytes(), Ordering::Relaxed);
            *known = self.counted(Entry { session, holder: known.holder, last_used: Instant::now() });
        }
    }

    /// Ends a session.
    pub fn remove(&self, id: &str) {
        self.take(id);
    }

    fn take(&self, id: &str) -> Option<S> {
        let entry = self.shard(id).remove(id)?;
        self.uncount(&entry);
        self.holders.remove(entry.holder, id);
        Some(entry.session)
    }

    /// Ends all sessions.
    pub fn clear(&self) {
        for shard in &self.shards {
            let ids: Vec<Arc<str>> =
                shard.lock().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect();
            ids.iter().for_each(|id| self.remove(id));
        }
    }

    /// Ends the sessions that have not been used for as long as they live, from time to time, for ever.
    pub async fn expire(&self) {
        let mut ticks = tokio::time::interval((self.life / 2).max(Duration::from_millis(100)));
        let mut release = std::pin::pin!(Fuse::terminated());
        loop {
            tokio::select! {
                _ = ticks.tick() => if self.sweep(Instant::now()) >= limits::MANY_SESSIONS {
                    release.set(tokio::time::sleep(limits::RELEASE_PAUSE).fuse());
                },
                // On a thread that serves no requests.
                () = &mut release => drop(tokio::task::spawn_blocking(skep_memory::release_heap)),
            }
        }
    }

    /// Ends the sessions that have not been used until now, and returns how many.
    fn sweep(&self, now: Instant) -> usize {
        let mut ended = 0;
        for shard in &self.shards {
            let is_idle = |entry: &mut Entry<S>| now.saturating_duration_since(entry.last_used) >= self.life;
            let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            let idle: Vec<(Arc<str>, Entry<S>)> = shard.extract_if(|_, entry| is_idle(entry)).collect();
            // Returns memory after many sessions have ended.
            if shard.capacity() > 4 * shard.len() {
                shard.shrink_to_fit();
            }
            drop(shard);
            ended += idle.len();
            for (id, entry) in idle {
                self.uncount(&entry);
                self.holders.remove(entry.holder, &id);
            }
        }
        ended
    }

    /// Ends a tenth of these sessions, those that were not used for longest.
    fn evict(&self, ids: Vec<Arc<str>>) {
        let last_used = |id: &Arc<str>| self.shard(id).get(id).map(|entry| entry.last_used);
        let mut ids: Vec<(Option<Instant>, Arc<str>)> =
            ids.into_iter().map(|id| (last_used(&id), id)).collect();
        let count = (ids.len() / 10).clamp(1, ids.len());
        ids.select_nth_unstable(count - 1);
        for (_, id) in ids.iter().take(count) {
            if let Some(session) = self.take(id) {
                session.evict();
            }
        }
    }

    /// The entry, with its bytes counted, or without them if there are too many.
    fn counted(&self, mut entry: Entry<S>) -> Entry<S> {
        let stored = entry.session.bytes();
        if self.stored.fetch_add(stored, Ordering::Relaxed) + stored > limits::SESSION_BYTES {
            self.stored.fetch_sub(stored, Ordering::Relaxed);
            entry.session.shed();
        }
        entry
    }

    fn uncount(&self, entry: &Entry<S>) {
        self.count.fetch_sub(1, Ordering::Relaxed);
        self.stored.fetch_sub(entry.session.bytes(), Ordering::Relaxed);
    }

    fn shard(&self, id: &str) -> MutexGuard<'_, HashMap<Arc<str>, Entry<S>>> {
        let number = self.hasher.hash_one(id) as usize % SHARDS;
        self.shards[number].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;
    use crate::identity::Owner;

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    fn session() -> Session {
        Session { server_id: None, pod: None, initialize: None, owner: Some(Owner::ANONYMOUS) }
    }

    fn address(number: usize) -> IpAddr {
        Ipv4Addr::from(u32::try_from(number).unwrap()).into()
    }

    #[test]
    fn a_session_lives_while_it_is_used() {
        let sessions = Memory::new(Duration::from_secs(10));
        let start = Instant::now();
        sessions.put("a", session(), HERE).unwrap();
        sessions.sweep(start + Duration::from_secs(9));
        assert!(sessions.get("a").is_some());
        sessions.sweep(Instant::now() + Duration::from_secs(11));
        assert_eq!(sessions.get("a"), None);
        assert_eq!(sessions.count.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_session_that_has_ended_is_not_brought_back_by_a_change() {
        let sessions = Memory::new(Duration::from_secs(10));
        sessions.put("a", session(), HERE).unwrap();
        let changed = Session { pod: Some(Arc::new("10.0.0.1:80".parse().unwrap())), ..session() };
        sessions.change("a", changed.clone());
        assert_eq!(sessions.get("a"), Some(changed));
        sessions.remove("a");
        sessions.change("a", session());
        assert_eq!(sessions.get("a"), None);
    }

    #[test]
    fn sessions_are_bounded_and_one_that_ends_makes_room() {
        let sessions = Memory::new(Duration::from_secs(10));
        for number in 0..limits::SESSIONS {
            sessions.put(&number.to_string(), session(), address(number)).unwrap();
        }
        assert!(sessions.put("one too many", session(), HERE).is_err());
        assert!(sessions.put("7", session(), address(7)).is_ok(), "an existing one can change");
        sessions.remove("7");
        assert!(sessions.put("one too many", session(), HERE).is_ok());
    }

    #[test]
    fn a_caller_with_too_many_sessions_loses_its_own_oldest() {
        let sessions = Memory::new(Duration::from_secs(10));
        let of =
            |owner: char| Session { owner: Owner::from_text(&owner.to_string().repeat(32)), ..session() };
        sessions.put("of another", of('b'), HERE).unwrap();
        for number in 0..limits::SESSIONS_OF_A_CALLER {
            sessions.put(&number.to_string(), of('a'), address(number)).unwrap();
        }
        assert!(sessions.get("0").is_some(), "used again, so it is not the oldest");
        sessions.put("one more", of('a'), HERE).unwrap();
        assert!(!sessions.knows("1") && sessions.knows("0") && sessions.knows("one more"));
        assert!(sessions.knows("of another"));
        let count = sessions.count.load(Ordering::Relaxed);
        assert!(count <= limits::SESSIONS_OF_A_CALLER + 1, "{count}");
    }

    /// Anonymous callers of one address cannot be distinguished: a flood ends idle sessions, and none that is in use.
    #[test]
    fn a_flood_of_sessions_ends_none_that_is_in_use() {
        let sessions = Memory::new(Duration::from_secs(10));
        sessions.put("in use", session(), HERE).unwrap();
        for number in 0..3 * limits::SESSIONS_OF_AN_ADDRESS {
            sessions.put(&number.to_string(), session(), HERE).unwrap();
            if number % 1_000 == 0 {
                assert!(sessions.get("in use").is_some(), "after {number}");
            }
        }
        assert!(sessions.count.load(Ordering::Relaxed) <= limits::SESSIONS_OF_AN_ADDRESS);
    }

    #[test]
    fn what_sessions_store_is_bounded_and_counted_until_they_end() {
        let sessions = Memory::new(Duration::from_secs(10));
        let stored = || sessions.stored.load(Ordering::Relaxed);
        let large = Session { initialize: Some(vec![b' '; 64 << 10].into()), ..session() };
        let count = limits::SESSION_BYTES / (64 << 10) + 10;
        for number in 0..count {
            sessions.put(&number.to_string(), large.clone(), address(number)).unwrap();
        }
        assert!(stored() <= limits::SESSION_BYTES);
        let last = sessions.get(&(count - 1).to_string()).unwrap();
        assert_eq!(last.initialize, None, "it exists, and cannot be restored");
        sessions.change("0", session());
        (0..count).for_each(|number| sessions.remove(&number.to_string()));
        assert_eq!((stored(), sessions.count.load(Ordering::Relaxed)), (0, 0));
    }
}
