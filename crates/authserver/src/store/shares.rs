//! Rows that strangers or users cause, of which no holder has more than its share: each can cause as many as they like.

use std::{
    collections::{BTreeSet, HashMap, VecDeque},
    hash::Hash,
    net::IpAddr,
    sync::Arc,
};

use super::Pending;

/// How many rows are added before expired ones are removed.
const SWEEP: usize = 256;
/// What a login takes beside its texts: its row, and its places in the maps.
const LOGIN: usize = 600;

/// Rows by their key, within a total size, and within one of each holder, who is an address or a user. The caller says what is measured.
pub(super) struct Shares<V, H = IpAddr> {
    rows: HashMap<Arc<str>, Row<V, H>>,
    holders: HashMap<H, Holder>,
    /// The holders, by the size of their rows: a full store costs no more than another.
    largest: BTreeSet<(usize, H)>,
    size: usize,
    added: usize,
    of_a_holder: usize,
    of_all: usize,
}

struct Row<V, H> {
    value: Box<V>,
    until: u64,
    holder: H,
    size: usize,
}

/// The rows that one has caused, the oldest first, also those that are gone.
#[derive(Default)]
struct Holder {
    keys: VecDeque<Arc<str>>,
    size: usize,
}

impl<V, H: Clone + Eq + Hash + Ord> Shares<V, H> {
    pub(super) fn new(of_a_holder: usize, of_all: usize) -> Self {
        Self {
            rows: HashMap::new(),
            holders: HashMap::new(),
            largest: BTreeSet::new(),
            size: 0,
            added: 0,
            of_a_holder,
            of_all,
        }
    }

    /// Adds or replaces a row of this size. Where there is no room, older ones make some: of the same holder if it has its share, and of
    /// the one that has most otherwise. So a holder with few rows keeps them while others cause many.
    ///
    /// Returns when the last of the removed rows would have expired, if there are any.
    pub(super) fn put(
        &mut self,
        key: &str,
        (value, size): (V, usize),
        holder: H,
        times: (u64, u64),
    ) -> Option<u64> {
        let (now, until) = times;
        self.added += 1;
        if self.added >= SWEEP {
            self.sweep(now);
        }
        if let Some(row) = self.rows.get_mut(key).filter(|row| row.holder == holder && row.size == size) {
            *row.value = value;
            row.until = until;
            return None;
        }
        self.take(key, now);
        let mut last = None;
        while self.holders.get(&holder).is_some_and(|held| held.size + size > self.of_a_holder) {
            last = last.max(self.remove_oldest(&holder));
        }
        while self.size + size > self.of_all {
            let Some((_, largest)) = self.largest.last().cloned() else { break };
            last = last.max(self.remove_oldest(&largest));
        }
        let key: Arc<str> = key.into();
        let held = self.holders.entry(holder.clone()).or_default();
        held.keys.push_back(key.clone());
        self.largest.remove(&(held.size, holder.clone()));
        held.size += size;
        self.largest.insert((held.size, holder.clone()));
        self.size += size;
        self.rows.insert(key, Row { value: Box::new(value), until, holder, size });
        last
    }

    pub(super) fn get(&self, key: &str, now: u64) -> Option<&V> {
        self.rows.get(key).filter(|row| row.until > now).map(|row| &*row.value)
    }

    /// The row with this key, once.
    pub(super) fn take(&mut self, key: &str, now: u64) -> Option<V> {
        let row = self.rows.remove(key)?;
        self.release(&row);
        (row.until > now).then_some(*row.value)
    }

    fn release(&mut self, row: &Row<V, H>) {
        self.size -= row.size;
        if let Some(held) = self.holders.get_mut(&row.holder) {
            self.largest.remove(&(held.size, row.holder.clone()));
            held.size -= row.size;
            if held.size == 0 {
                self.holders.remove(&row.holder);
            } else {
                self.largest.insert((held.size, row.holder.clone()));
            }
        }
    }

    /// Removes the oldest row of a holder. Returns when it would have expired.
    fn remove_oldest(&mut self, holder: &H) -> Option<u64> {
        while let Some(key) = self.holders.get_mut(holder).and_then(|held| held.keys.pop_front()) {
            if self.rows.get(&key).is_some_and(|row| row.holder == *holder)
                && let Some(row) = self.rows.remove(&key)
            {
                self.release(&row);
                return Some(row.until);
            }
        }
        if let Some(held) = self.holders.remove(holder) {
            self.largest.remove(&(held.size, holder.clone()));
        }
        None
    }

    /// The holder of a row.
    pub(super) fn holder(&self, key: &str) -> Option<&H> {
        self.rows.get(key).map(|row| &row.holder)
    }

    fn sweep(&mut self, now: u64) {
        self.added = 0;
        let expired: Vec<_> =
            self.rows.iter().filter(|(_, row)| row.until <= now).map(|(key, _)| key.clone()).collect();
        for key in expired {
            self.take(&key, now);
        }
        for (holder, held) in &mut self.holders {
            held.keys.retain(|key| self.rows.get(key).is_some_and(|row| row.holder == *holder));
        }
    }
}

/// The memory that a login takes. Clients choose how long most of its texts are.
pub(super) fn size(state: &str, pending: &Pending) -> usize {
    let Pending { client_id, redirect_uri, state: of_client, scopes, pkce_challenge, resources, .. } =
        pending;
    let texts = [state, client_id, redirect_uri, of_client, pkce_challenge];
    let lists = scopes.iter().chain(resources).map(|text| text.len() + size_of::<String>());
    LOGIN + texts.iter().map(|text| text.len()).sum::<usize>() + lists.sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{limits, tests::pending};

    const LIFE: u64 = 600;

    fn logins() -> Shares<Pending> {
        Shares::new(limits::LOGINS_OF_AN_ADDRESS, limits::LOGINS)
    }

    fn put(logins: &mut Shares<Pending>, state: &str, text: &str, at: IpAddr, times: (u64, u64)) {
        let login = pending(text);
        let size = size(state, &login);
        logins.put(state, (login, size), at, times);
    }

    fn address(last: u8) -> IpAddr {
        IpAddr::from([203, 0, 113, last])
    }

    /// What an address can begin at most, and more.
    fn flood(logins: &mut Shares<Pending>, at: IpAddr, text: usize) -> usize {
        let times = limits::LOGINS / (LOGIN + text) + 1;
        for number in 0..times {
            put(logins, &format!("{at}-{number}"), &"x".repeat(text), at, (0, LIFE));
        }
        times
    }

    #[test]
    fn an_address_that_begins_logins_without_end_ends_its_own_oldest() {
        let mut logins = logins();
        put(&mut logins, "quiet", "", address(1), (0, LIFE));
        let begun = flood(&mut logins, address(2), 32 << 10);
        assert!(logins.size <= limits::LOGINS_OF_AN_ADDRESS + 2 * LOGIN, "{}", logins.size);
        put(&mut logins, "other", "", address(3), (0, LIFE));
        for (state, is_there) in [
            ("quiet", true),
            ("other", true),
            ("203.0.113.2-0", false),
            (&*format!("203.0.113.2-{}", begun - 1), true),
        ] {
            assert_eq!(logins.take(state, 0).is_some(), is_there, "{state}");
        }
    }

    #[test]
    fn many_addresses_together_do_not_keep_others_from_logging_in() {
        let mut logins = logins();
        put(&mut logins, "quiet", "", address(1), (0, LIFE));
        for last in 10..20 {
            flood(&mut logins, address(last), 32 << 10);
        }
        assert!(logins.size <= limits::LOGINS, "{}", logins.size);
        put(&mut logins, "other", "", address(2), (0, LIFE));
        assert!(logins.take("quiet", 0).is_some() && logins.take("other", 0).is_some());
    }

    /// Many addresses with one login each: whichever makes room is found at once, and none is counted that has none left.
    #[test]
    fn the_address_with_most_logins_is_known_without_a_look_at_all_of_them() {
        let mut logins = logins();
        let at = |number: u32| IpAddr::from(number.to_be_bytes());
        let addresses = 2 * u32::try_from(limits::LOGINS / (LOGIN + 4096)).unwrap();
        for number in 0..addresses {
            put(&mut logins, &number.to_string(), &"x".repeat(4096), at(number), (0, LIFE));
            assert_eq!(logins.largest.len(), logins.holders.len());
        }
        assert!(logins.size <= limits::LOGINS, "{}", logins.size);
        let held = logins.largest.iter().map(|(size, _)| size).sum::<usize>();
        assert_eq!(held, logins.size);
    }

    #[test]
    fn a_row_that_is_put_again_and_again_is_one_row_and_lasts_longer() {
        let mut rows = Shares::<u64, String>::new(2, 10);
        rows.put("other", (0, 1), "ann".into(), (0, LIFE));
        for number in 0..1000 {
            rows.put("same", (number, 1), "ann".into(), (0, number + LIFE));
        }
        assert_eq!((rows.get("same", LIFE), rows.get("other", 0)), (Some(&999), Some(&0)));
        assert_eq!((rows.size, rows.holders["ann"].keys.len()), (2, 2));
    }

    #[test]
    fn logins_that_are_over_take_no_memory() {
        let mut logins = logins();
        for number in 0..10_000 {
            let state = number.to_string();
            put(&mut logins, &state, "", address(1), (number, number + 1));
            if number % 2 == 0 {
                assert!(logins.take(&state, number).is_some());
            }
        }
        assert!(logins.take("9999", 10_000).is_none());
        logins.sweep(20_000);
        assert!(logins.rows.is_empty() && logins.holders.is_empty() && logins.size == 0);
        assert!(logins.largest.is_empty());
    }
}
