//! Sessions in the memory of one proxy.

use std::{
    collections::HashMap,
    hash::{BuildHasher, RandomState},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use super::Session;
use crate::limits;

/// Locks are held for one look-up; this many let others pass meanwhile.
const SHARDS: usize = 16;

struct Entry {
    session: Session,
    last_used: Instant,
}

/// The sessions of one proxy, in its memory. Idle ones expire.
pub struct Memory {
    shards: [Mutex<HashMap<Box<str>, Entry>>; SHARDS],
    hasher: RandomState,
    count: AtomicUsize,
    life: Duration,
}

/// There are as many sessions as there may be.
#[derive(Debug)]
pub struct Full;

impl Memory {
    /// Sessions that expire when they are not used for this long.
    pub fn new(life: Duration) -> Self {
        Self { shards: Default::default(), hasher: RandomState::new(), count: AtomicUsize::new(0), life }
    }

    /// The session of that id, which counts as a use.
    pub fn get(&self, id: &str) -> Option<Session> {
        let mut shard = self.shard(id);
        let entry = shard.get_mut(id)?;
        entry.last_used = Instant::now();
        Some(entry.session.clone())
    }

    /// Whether the session exists, which does not count as a use.
    pub fn knows(&self, id: &str) -> bool {
        self.shard(id).contains_key(id)
    }

    /// Adds a session, in place of one of that id.
    pub fn put(&self, id: &str, session: Session) -> Result<(), Full> {
        let mut shard = self.shard(id);
        let entry = Entry { session, last_used: Instant::now() };
        if let Some(known) = shard.get_mut(id) {
            *known = entry;
            return Ok(());
        }
        if self.count.fetch_add(1, Ordering::Relaxed) >= limits::SESSIONS {
            self.count.fetch_sub(1, Ordering::Relaxed);
            return Err(Full);
        }
        shard.insert(id.into(), entry);
        Ok(())
    }

    /// Changes what is known of a session, unless it has ended meanwhile.
    pub fn change(&self, id: &str, session: Session) {
        if let Some(known) = self.shard(id).get_mut(id) {
            *known = Entry { session, last_used: Instant::now() };
        }
    }

    /// Ends a session.
    pub fn remove(&self, id: &str) {
        if self.shard(id).remove(id).is_some() {
            self.count.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Ends the sessions that have not been used for as long as they live, from time to time, for ever.
    pub async fn expire(&self) {
        let mut ticks = tokio::time::interval((self.life / 2).max(Duration::from_millis(100)));
        loop {
            ticks.tick().await;
            self.sweep(Instant::now());
        }
    }

    fn sweep(&self, now: Instant) {
        for shard in &self.shards {
            let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            let before = shard.len();
            shard.retain(|_, entry| now.saturating_duration_since(entry.last_used) < self.life);
            self.count.fetch_sub(before - shard.len(), Ordering::Relaxed);
            // Returns memory after many sessions have ended.
            if shard.capacity() > 4 * shard.len() {
                shard.shrink_to_fit();
            }
        }
    }

    fn shard(&self, id: &str) -> MutexGuard<'_, HashMap<Box<str>, Entry>> {
        let number = self.hasher.hash_one(id) as usize % SHARDS;
        self.shards[number].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::Owner;

    fn session() -> Session {
        Session { server_id: None, pod: None, initialize: None, owner: Some(Owner::ANONYMOUS) }
    }

    #[test]
    fn a_session_lives_while_it_is_used() {
        let sessions = Memory::new(Duration::from_secs(10));
        let start = Instant::now();
        sessions.put("a", session()).unwrap();
        sessions.sweep(start + Duration::from_secs(9));
        assert!(sessions.get("a").is_some());
        sessions.sweep(Instant::now() + Duration::from_secs(11));
        assert_eq!(sessions.get("a"), None);
        assert_eq!(sessions.count.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_session_that_has_ended_is_not_brought_back_by_a_change() {
        let sessions = Memory::new(Duration::from_secs(10));
        sessions.put("a", session()).unwrap();
        let changed = Session { pod: Some("10.0.0.1:80".into()), ..session() };
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
            sessions.put(&number.to_string(), session()).unwrap();
        }
        assert!(sessions.put("one too many", session()).is_err());
        assert!(sessions.put("7", session()).is_ok(), "an existing one can change");
        sessions.remove("7");
        assert!(sessions.put("one too many", session()).is_ok());
    }
}
