//! A bounded map whose entries expire. A full one costs no more than another: strangers can fill it.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

/// Entries with the time at which they expire, in seconds since 1970.
pub(super) struct Expiring<V> {
    entries: HashMap<Arc<str>, (V, u64)>,
    /// Their keys, by that time.
    order: BTreeSet<(u64, Arc<str>)>,
    most: usize,
}

impl<V> Expiring<V> {
    pub(super) fn new(most: usize) -> Self {
        Self { entries: HashMap::new(), order: BTreeSet::new(), most }
    }

    /// Adds or replaces an entry. `false`: there is no room.
    pub(super) fn put(&mut self, key: &str, value: V, until: u64, now: u64) -> bool {
        self.sweep(now);
        if self.is_full() && !self.entries.contains_key(key) {
            return false;
        }
        self.insert(key, value, until);
        true
    }

    /// Adds or replaces an entry. If there is no room, the one that expires first makes some: its key is returned.
    pub(super) fn put_evicting(&mut self, key: &str, value: V, until: u64, now: u64) -> Option<Arc<str>> {
        self.sweep(now);
        let is_one_more = self.is_full() && !self.entries.contains_key(key);
        let evicted = if is_one_more { self.remove_first(|_| true) } else { None };
        self.insert(key, value, until);
        evicted
    }

    /// How many entries there are, and the keys of some: those that expire last, the last first.
    pub(super) fn last(&mut self, most: usize, now: u64) -> (usize, Vec<Arc<str>>) {
        self.sweep(now);
        let keys = self.order.iter().rev().take(most).map(|(_, key)| key.clone());
        (self.entries.len(), keys.collect())
    }

    /// So many entries, by when they expire, from this position on, and the position of the others.
    pub(super) fn page(&mut self, from: &str, most: usize, now: u64) -> (Vec<Arc<str>>, Option<String>) {
        self.sweep(now);
        let (until, key) = from.split_once(' ').unwrap_or_default();
        let from: (u64, Arc<str>) = (until.parse().unwrap_or_default(), key.into());
        let mut rest = self.order.range(from..);
        let keys = rest.by_ref().take(most).map(|(_, key)| key.clone()).collect();
        (keys, rest.next().map(|(until, key)| format!("{until} {key}")))
    }

    fn sweep(&mut self, now: u64) {
        while self.remove_first(|first| first <= now).is_some() {}
    }

    fn insert(&mut self, key: &str, value: V, until: u64) {
        let key: Arc<str> = key.into();
        if let Some((_, before)) = self.entries.insert(key.clone(), (value, until)) {
            self.order.remove(&(before, key.clone()));
        }
        self.order.insert((until, key));
    }

    /// Removes an entry. `false`: there is none.
    pub(super) fn remove(&mut self, key: &str) -> bool {
        let Some((key, (_, until))) = self.entries.remove_entry(key) else { return false };
        self.order.remove(&(until, key))
    }

    pub(super) fn get(&self, key: &str, now: u64) -> Option<&V> {
        self.entries.get(key).filter(|(_, until)| *until > now).map(|(value, _)| value)
    }

    pub(super) fn get_mut(&mut self, key: &str, now: u64) -> Option<&mut V> {
        self.entries.get_mut(key).filter(|(_, until)| *until > now).map(|(value, _)| value)
    }

    /// When an entry expires.
    pub(super) fn until(&self, key: &str) -> Option<u64> {
        self.entries.get(key).map(|(_, until)| *until)
    }

    /// Sets when an entry expires.
    pub(super) fn extend(&mut self, key: &str, until: u64) {
        if let Some((_, known)) = self.entries.get_mut(key) {
            let before = std::mem::replace(known, until);
            if let Some((_, key)) = self.order.take(&(before, key.into())) {
                self.order.insert((until, key));
            }
        }
    }

    fn is_full(&self) -> bool {
        self.entries.len() >= self.most
    }

    /// Removes the entry that expires first, if this holds for that time, and returns its key.
    fn remove_first(&mut self, is_due: impl Fn(u64) -> bool) -> Option<Arc<str>> {
        let (until, _) = self.order.first()?;
        if !is_due(*until) {
            return None;
        }
        let (_, key) = self.order.pop_first()?;
        self.entries.remove(&key);
        Some(key)
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

    #[test]
    fn where_there_is_no_room_the_entry_that_expires_first_makes_some() {
        let mut map = Expiring::new(2);
        for (key, until) in [("a", 20), ("b", 10), ("c", 30), ("c", 40)] {
            map.put_evicting(key, until, until, 0);
        }
        assert_eq!((map.get("a", 0), map.get("b", 0), map.get("c", 0)), (Some(&20), None, Some(&40)));
        assert_eq!(map.put_evicting("d", 50, 50, 0).as_deref(), Some("a"));
        assert_eq!(map.last(1, 0), (2, vec!["d".into()]));
        assert_eq!(map.last(9, 40), (1, vec!["d".into()]), "what expired is not counted");
        map.remove("d");
        map.remove("d");
        map.put_evicting("c", 40, 40, 0);
        assert_eq!((map.entries.len(), map.order.len()), (1, 1));
    }

    #[test]
    fn a_replaced_or_extended_entry_is_as_old_as_its_last_time() {
        let mut map = Expiring::new(2);
        assert!(map.put("a", 1, 10, 0) && map.put("b", 2, 20, 0) && map.put("a", 3, 40, 0));
        map.extend("b", 30);
        assert_eq!(map.put_evicting("c", 4, 50, 0).as_deref(), Some("b"), "the first to expire");
        assert_eq!((map.get("a", 0), map.get("b", 0)), (Some(&3), None));
        assert!(map.put("c", 4, 50, 40));
        assert_eq!((map.entries.len(), map.order.len()), (1, 1), "what expired takes no room");
    }
}
