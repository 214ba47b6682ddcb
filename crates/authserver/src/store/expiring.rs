//! A bounded map whose entries expire.

use std::collections::HashMap;

/// How many entries are added before expired ones are removed.
const SWEEP: usize = 256;

/// Entries with the time at which they expire, in seconds since 1970.
pub(super) struct Expiring<V> {
    entries: HashMap<String, (V, u64)>,
    most: usize,
    added: usize,
}

impl<V> Expiring<V> {
    pub(super) fn new(most: usize) -> Self {
        Self { entries: HashMap::new(), most, added: 0 }
    }

    /// Adds or replaces an entry. `false`: there is no room.
    pub(super) fn put(&mut self, key: &str, value: V, until: u64, now: u64) -> bool {
        self.added += 1;
        if self.added >= SWEEP || self.entries.len() >= self.most {
            self.added = 0;
            self.entries.retain(|_, (_, until)| *until > now);
        }
        if self.entries.len() >= self.most && !self.entries.contains_key(key) {
            return false;
        }
        self.entries.insert(key.to_owned(), (value, until));
        true
    }

    pub(super) fn get(&self, key: &str, now: u64) -> Option<&V> {
        self.entries.get(key).filter(|(_, until)| *until > now).map(|(value, _)| value)
    }

    /// Sets when an entry expires.
    pub(super) fn extend(&mut self, key: &str, until: u64) {
        if let Some((_, known)) = self.entries.get_mut(key) {
            *known = until;
        }
    }

    /// Removes the entry that expires first, if that is before the time.
    pub(super) fn evict(&mut self, before: u64) {
        let first = self.entries.iter().min_by_key(|(_, (_, until))| *until);
        if let Some(key) = first.filter(|(_, (_, until))| *until < before).map(|(key, _)| key.clone()) {
            self.entries.remove(&key);
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.entries.len() >= self.most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_expire_and_their_number_is_bounded() {
        let mut map = Expiring::new(2);
        assert!(map.put("a", 1, 10, 0) && map.put("b", 2, 20, 0) && !map.put("c", 3, 30, 0));
        assert_eq!((map.get("a", 9), map.get("a", 10)), (Some(&1), None));
        assert!(map.put("c", 3, 30, 10));
        assert_eq!(map.get("c", 10), Some(&3));
    }
}
