//! Sessions that clients have ended.

use std::{
    collections::{HashSet, VecDeque},
    hash::{BuildHasher, RandomState},
    sync::{Mutex, PoisonError},
};

use crate::limits;

/// The sessions that ended last, by a keyed hash of their ids. An id that carries its `initialize` could otherwise still be
/// used, as its session would be restored.
#[derive(Default)]
pub struct Ended {
    hasher: RandomState,
    last: Mutex<Last>,
}

#[derive(Default)]
struct Last {
    known: HashSet<u64>,
    order: VecDeque<u64>,
}

impl Ended {
    /// Remembers that a session has ended.
    pub fn insert(&self, id: &str) {
        let hash = self.hasher.hash_one(id);
        let Last { known, order } = &mut *self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if known.insert(hash) {
            order.push_back(hash);
        }
        if order.len() > limits::ENDED_SESSIONS
            && let Some(oldest) = order.pop_front()
        {
            known.remove(&oldest);
        }
    }

    /// Whether a session has ended, as far as that is remembered.
    pub fn contains(&self, id: &str) -> bool {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        !last.known.is_empty() && last.known.contains(&self.hasher.hash_one(id))
    }

    /// A server may give an id to a new session again.
    pub fn remove(&self, id: &str) {
        let Last { known, order } = &mut *self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if known.is_empty() {
            return;
        }
        let hash = self.hasher.hash_one(id);
        if known.remove(&hash) {
            order.retain(|other| *other != hash);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_ended_sessions_are_remembered() {
        let ended = Ended::default();
        assert!(!ended.contains("a"));
        ended.insert("a");
        ended.insert("a");
        assert!(ended.contains("a") && !ended.contains("b"));
        ended.remove("a");
        assert!(!ended.contains("a"));
        ended.insert("a");
        for number in 0..limits::ENDED_SESSIONS {
            ended.insert(&number.to_string());
        }
        assert!(!ended.contains("a") && ended.contains("0"));
        assert_eq!(ended.last.lock().unwrap().order.len(), limits::ENDED_SESSIONS);
    }
}
