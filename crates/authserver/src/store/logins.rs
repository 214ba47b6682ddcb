//! Logins that wait, of which no address has more than its share: a stranger can begin as many as it likes.

use std::{
    collections::{BTreeSet, HashMap, VecDeque},
    net::IpAddr,
    sync::Arc,
};

use super::Pending;
use crate::limits;

/// How many logins are added before expired ones are removed.
const SWEEP: usize = 256;
/// What a login takes beside its texts: its row, and its places in the maps.
const ROW: usize = 600;

/// Logins by their state. The measure is memory: clients choose how long most of the texts are.
#[derive(Default)]
pub(super) struct Logins {
    rows: HashMap<Arc<str>, Row>,
    holders: HashMap<IpAddr, Holder>,
    /// The addresses, by the memory that their logins take: a full store costs no more than another.
    largest: BTreeSet<(usize, IpAddr)>,
    size: usize,
    added: usize,
}

struct Row {
    pending: Box<Pending>,
    until: u64,
    address: IpAddr,
    size: usize,
}

/// The logins that began at one address, the oldest first, also those that are over.
#[derive(Default)]
struct Holder {
    states: VecDeque<Arc<str>>,
    size: usize,
}

impl Logins {
    /// Adds a login. Where there is no room, older ones make some: of the same address if it has its share, and of the one
    /// that has most otherwise. So an address with few logins keeps them while others begin many.
    pub(super) fn put(&mut self, state: &str, pending: Pending, address: IpAddr, times: (u64, u64)) {
        let (now, until) = times;
        self.added += 1;
        if self.added >= SWEEP {
            self.sweep(now);
        }
        let size = size(state, &pending);
        while self
            .holders
            .get(&address)
            .is_some_and(|holder| holder.size + size > limits::LOGINS_OF_AN_ADDRESS)
        {
            self.remove_oldest(address);
        }
        while self.size + size > limits::LOGINS {
            let Some(&(_, address)) = self.largest.last() else { break };
            self.remove_oldest(address);
        }
        let state: Arc<str> = state.into();
        let holder = self.holders.entry(address).or_default();
        holder.states.push_back(state.clone());
        self.largest.remove(&(holder.size, address));
        holder.size += size;
        self.largest.insert((holder.size, address));
        self.size += size;
        self.rows.insert(state, Row { pending: Box::new(pending), until, address, size });
    }

    /// The login with this state, once.
    pub(super) fn take(&mut self, state: &str, now: u64) -> Option<Pending> {
        let row = self.rows.remove(state)?;
        self.release(&row);
        (row.until > now).then_some(*row.pending)
    }

    fn release(&mut self, row: &Row) {
        self.size -= row.size;
        if let Some(holder) = self.holders.get_mut(&row.address) {
            self.largest.remove(&(holder.size, row.address));
            holder.size -= row.size;
            if holder.size == 0 {
                self.holders.remove(&row.address);
            } else {
                self.largest.insert((holder.size, row.address));
            }
        }
    }

    fn remove_oldest(&mut self, address: IpAddr) {
        while let Some(state) = self.holders.get_mut(&address).and_then(|holder| holder.states.pop_front()) {
            if let Some(row) = self.rows.remove(&state) {
                self.release(&row);
                return;
            }
        }
        if let Some(holder) = self.holders.remove(&address) {
            self.largest.remove(&(holder.size, address));
        }
    }

    fn sweep(&mut self, now: u64) {
        self.added = 0;
        let expired: Vec<_> =
            self.rows.iter().filter(|(_, row)| row.until <= now).map(|(state, _)| state.clone()).collect();
        for state in expired {
            self.take(&state, now);
        }
        for holder in self.holders.values_mut() {
            holder.states.retain(|state| self.rows.contains_key(state));
        }
    }
}

/// The memory that a login takes.
fn size(state: &str, pending: &Pending) -> usize {
    let Pending { client_id, redirect_uri, state: of_client, scopes, pkce_challenge, resources, .. } =
        pending;
    let texts = [state, client_id, redirect_uri, of_client, pkce_challenge];
    let lists = scopes.iter().chain(resources).map(|text| text.len() + size_of::<String>());
    ROW + texts.iter().map(|text| text.len()).sum::<usize>() + lists.sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::pending;

    const LIFE: u64 = 600;

    fn address(last: u8) -> IpAddr {
        IpAddr::from([203, 0, 113, last])
    }

    /// What an address can begin at most, and more.
    fn flood(logins: &mut Logins, at: IpAddr, text: usize) -> usize {
        let times = limits::LOGINS / (ROW + text) + 1;
        for number in 0..times {
            logins.put(&format!("{at}-{number}"), pending(&"x".repeat(text)), at, (0, LIFE));
        }
        times
    }

    #[test]
    fn an_address_that_begins_logins_without_end_ends_its_own_oldest() {
        let mut logins = Logins::default();
        logins.put("quiet", pending(""), address(1), (0, LIFE));
        let begun = flood(&mut logins, address(2), 32 << 10);
        assert!(logins.size <= limits::LOGINS_OF_AN_ADDRESS + 2 * ROW, "{}", logins.size);
        logins.put("other", pending(""), address(3), (0, LIFE));
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
        let mut logins = Logins::default();
        logins.put("quiet", pending(""), address(1), (0, LIFE));
        for last in 10..20 {
            flood(&mut logins, address(last), 32 << 10);
        }
        assert!(logins.size <= limits::LOGINS, "{}", logins.size);
        logins.put("other", pending(""), address(2), (0, LIFE));
        assert!(logins.take("quiet", 0).is_some() && logins.take("other", 0).is_some());
    }

    /// Many addresses with one login each: whichever makes room is found at once, and none is counted that has none left.
    #[test]
    fn the_address_with_most_logins_is_known_without_a_look_at_all_of_them() {
        let mut logins = Logins::default();
        let at = |number: u32| IpAddr::from(number.to_be_bytes());
        let addresses = 2 * u32::try_from(limits::LOGINS / (ROW + 4096)).unwrap();
        for number in 0..addresses {
            logins.put(&number.to_string(), pending(&"x".repeat(4096)), at(number), (0, LIFE));
            assert_eq!(logins.largest.len(), logins.holders.len());
        }
        assert!(logins.size <= limits::LOGINS, "{}", logins.size);
        let held = logins.largest.iter().map(|(size, _)| size).sum::<usize>();
        assert_eq!(held, logins.size);
    }

    #[test]
    fn logins_that_are_over_take_no_memory() {
        let mut logins = Logins::default();
        for number in 0..10_000 {
            let state = number.to_string();
            logins.put(&state, pending(""), address(1), (number, number + 1));
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
