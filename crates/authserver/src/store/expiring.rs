//! A bounded map whose entries expire. A full one costs no more than another: unauthenticated clients can fill it.

use std::{
    cmp::Reverse,
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

/// The holder of entries of [`Expiring::put`], which make no room for others.
const NO_HOLDER: &str = "";

/// Entries with the time at which they expire, in seconds since 1970, and with a holder, who is a user or an address.
pub(super) struct Expiring<V> {
    entries: HashMap<Arc<str>, Entry<V>>,
    /// Their keys, by that time.
    order: BTreeSet<(u64, Arc<str>)>,
    /// The same for each holder.
    holders: HashMap<Arc<str>, BTreeSet<(u64, Arc<str>)>>,
    /// The holders, by the number of their entries, and by when the first of these expires.
    largest: BTreeSet<Rank>,
    most: usize,
}

struct Entry<V> {
    value: V,
    until: u64,
    holder: Arc<str>,
}

type Rank = (usize, Reverse<u64>, Arc<str>);

impl<V> Expiring<V> {
    pub(super) fn new(most: usize) -> Self {
        Self {
            entries: HashMap::new(),
            order: BTreeSet::new(),
            holders: HashMap::new(),
            largest: BTreeSet::new(),
            most,
        }
    }

    /// Adds or replaces an entry. `false`: there is no room.
    pub(super) fn put(&mut self, key: &str, value: V, until: u64, now: u64) -> bool {
        self.sweep(now);
        if self.is_full() && !self.entries.contains_key(key) {
            return false;
        }
        self.insert(key, Entry { value, until, holder: NO_HOLDER.into() });
        true
    }

    /// Adds or replaces an entry. If there is no room, the holder that has most entries makes some: the key of its entry that
    /// expires first is returned. So a holder with few entries keeps them while another adds many.
    pub(super) fn put_evicting(
        &mut self,
        key: &str,
        value: V,
        holder: &str,
        (now, until): (u64, u64),
    ) -> Option<Arc<str>> {
        self.sweep(now);
        let is_one_more = self.is_full() && !self.entries.contains_key(key);
        let evicted = if is_one_more { self.first_of_largest() } else { None };
        if let Some(evicted) = &evicted {
            self.remove(evicted);
        }
        self.insert(key, Entry { value, until, holder: holder.into() });
        evicted
    }

    /// How many entries there are, and the keys of some: those that expire last, the last first.
    pub(super) fn last(&mut self, most: usize, now: u64) -> (usize, Vec<Arc<str>>) {
        self.sweep(now);
        let keys = self.order.iter().rev().take(most).map(|(_, key)| key.clone());
        (self.entries.len(), keys.collect())
    }

    /// A page of entries, by when they expire, from this position on, and the position of the others.
    pub(super) fn page(&mut self, from: &str, most: usize, now: u64) -> (Vec<Arc<str>>, Option<String>) {
        self.sweep(now);
        let (until, key) = from.split_once(' ').unwrap_or_default();
        let from: (u64, Arc<str>) = (until.parse().unwrap_or_default(), key.into());
        let mut rest = self.order.range(from..);
        let keys = rest.by_ref().take(most).map(|(_, key)| key.clone()).collect();
        (keys, rest.next().map(|(until, key)| format!("{until} {key}")))
    }

    fn sweep(&mut self, now: u64) {
        while let Some((_, key)) = self.order.first().filter(|(until, _)| *until <= now) {
            let key = key.clone();
            self.remove(&key);
        }
    }

    fn insert(&mut self, key: &str, entry: Entry<V>) {
        self.remove(key);
        let key: Arc<str> = key.into();
        let place = (entry.until, key.clone());
        self.order.insert(place.clone());
        self.change(&entry.holder, |held| held.insert(place));
        self.entries.insert(key, entry);
    }

    /// Removes an entry. `false`: there is none.
    pub(super) fn remove(&mut self, key: &str) -> bool {
        self.take(key).is_some()
    }

    fn take(&mut self, key: &str) -> Option<Entry<V>> {
        let (key, entry) = self.entries.remove_entry(key)?;
        let place = (entry.until, key);
        self.order.remove(&place);
        self.change(&entry.holder, |held| held.remove(&place));
        Some(entry)
    }

    /// Changes the entries of a holder, and its rank.
    fn change<T>(&mut self, holder: &Arc<str>, change: impl FnOnce(&mut BTreeSet<(u64, Arc<str>)>) -> T) {
        let rank = |held: &BTreeSet<(u64, Arc<str>)>| -> Option<Rank> {
            Some((held.len(), Reverse(held.first()?.0), holder.clone()))
        };
        let held = self.holders.entry(holder.clone()).or_default();
        if let Some(before) = rank(held) {
            self.largest.remove(&before);
        }
        change(held);
        if let Some(after) = rank(held) {
            self.largest.insert(after);
        } else {
            self.holders.remove(holder);
        }
    }

    pub(super) fn get(&self, key: &str, now: u64) -> Option<&V> {
        self.entries.get(key).filter(|entry| entry.until > now).map(|entry| &entry.value)
    }

    pub(super) fn get_mut(&mut self, key: &str, now: u64) -> Option<&mut V> {
        self.entries.get_mut(key).filter(|entry| entry.until > now).map(|entry| &mut entry.value)
    }

    /// When an entry expires.
    pub(super) fn until(&self, key: &str) -> Option<u64> {
        self.entries.get(key).map(|entry| entry.until)
    }

    /// Sets when an entry expires.
    pub(super) fn extend(&mut self, key: &str, until: u64) {
        if let Some(entry) = self.take(key) {
            self.insert(key, Entry { until, ..entry });
        }
    }

    fn is_full(&self) -> bool {
        self.entries.len() >= self.most
    }

    /// The key of the entry that expires first, of the holder that has most.
    fn first_of_largest(&self) -> Option<Arc<str>> {
        let (_, _, largest) = self.largest.last()?;
        self.holders.get(largest)?.first().map(|(_, key)| key.clone())
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
            map.put_evicting(key, until, "ann", (0, until));
        }
        assert_eq!((map.get("a", 0), map.get("b", 0), map.get("c", 0)), (Some(&20), None, Some(&40)));
        assert_eq!(map.put_evicting("d", 50, "ann", (0, 50)).as_deref(), Some("a"));
        assert_eq!(map.last(1, 0), (2, vec!["d".into()]));
        assert_eq!(map.last(9, 40), (1, vec!["d".into()]), "what expired is not counted");
        map.remove("d");
        map.remove("d");
        map.put_evicting("c", 40, "ann", (0, 40));
        assert_eq!((map.entries.len(), map.order.len()), (1, 1));
    }

    #[test]
    fn a_replaced_or_extended_entry_is_as_old_as_its_last_time() {
        let mut map = Expiring::new(2);
        assert!(map.put("a", 1, 10, 0) && map.put("b", 2, 20, 0) && map.put("a", 3, 40, 0));
        map.extend("b", 30);
        assert_eq!(map.put_evicting("c", 4, "", (0, 50)).as_deref(), Some("b"), "the first to expire");
        assert_eq!((map.get("a", 0), map.get("b", 0)), (Some(&3), None));
        assert!(map.put("c", 4, 50, 40));
        assert_eq!((map.entries.len(), map.order.len()), (1, 1), "what expired takes no room");
    }

    #[test]
    fn the_holder_with_most_entries_makes_room() {
        let mut map = Expiring::new(4);
        map.put_evicting("of-ann", 0, "ann", (0, 10));
        for number in 0..100 {
            map.put_evicting(&number.to_string(), 0, "bob", (0, 20 + number));
        }
        assert!(map.get("of-ann", 0).is_some() && map.get("96", 0).is_none() && map.get("97", 0).is_some());
        // Of two who have the same number, the entry that expires first makes room.
        map.put_evicting("other", 0, "ann", (0, 30));
        assert_eq!(map.put_evicting("of-cat", 0, "cat", (0, 5)).as_deref(), Some("of-ann"));
        map.sweep(1_000);
        assert!(map.entries.is_empty() && map.order.is_empty() && map.holders.is_empty());
        assert!(map.largest.is_empty());
    }
}
