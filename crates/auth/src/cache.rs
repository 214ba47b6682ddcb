//! A bounded cache of results for tokens. Its keys are hashes of the tokens.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::Instant,
};

use sha2::{Digest, Sha256};

use crate::limits;

pub(crate) type Key = [u8; 32];

/// Results for tokens, each with the time at which it expires.
pub(crate) struct Cache<V>(Mutex<HashMap<Key, (V, Instant)>>);

impl<V: Clone> Cache<V> {
    pub(crate) fn new() -> Self {
        Self(Mutex::default())
    }

    /// The result for a token, unless it has expired.
    pub(crate) fn get(&self, token: &str, now: Instant) -> Option<V> {
        // Hashed before the lock, which all requests need.
        let key = key(token);
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(&key).filter(|(_, until)| now < *until).map(|(value, _)| value.clone())
    }

    /// Forgets the result for a token.
    pub(crate) fn forget(&self, token: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&key(token));
    }

    /// Stores a result. A full cache evicts expired entries, and then all.
    pub(crate) fn put(&self, token: &str, value: V, until: Instant, now: Instant) {
        if until <= now {
            return;
        }
        let key = key(token);
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= limits::CACHED {
            known.retain(|_, (_, until)| now < *until);
        }
        if known.len() >= limits::CACHED {
            known.clear();
        }
        known.insert(key, (value, until));
    }
}

pub(crate) fn key(token: &str) -> Key {
    Sha256::digest(token.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn entries_expire_and_their_number_is_bounded() {
        let cache = Cache::new();
        let now = Instant::now();
        let later = now + Duration::from_secs(10);
        cache.put("a", 1, later, now);
        assert_eq!((cache.get("a", now), cache.get("a", later), cache.get("b", now)), (Some(1), None, None));
        for number in 0..2 * limits::CACHED {
            cache.put(&number.to_string(), number, later, now);
            assert!(cache.0.lock().unwrap().len() <= limits::CACHED);
        }
        assert_eq!(cache.get(&(2 * limits::CACHED - 1).to_string(), now), Some(2 * limits::CACHED - 1));
    }
}
