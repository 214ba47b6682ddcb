//! Sessions that clients have ended.

use std::{
    collections::{HashMap, VecDeque},
    hash::{BuildHasher, RandomState},
    net::IpAddr,
    sync::{Mutex, PoisonError},
};

use skep_auth::counted_address;

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
    /// Who has ended each.
    known: HashMap<u64, IpAddr>,
    order: VecDeque<u64>,
    /// How many each address has ended, as it is counted.
    counts: HashMap<IpAddr, usize>,
}

impl Last {
    fn remove(&mut self, hash: u64) {
        let Some(peer) = self.known.remove(&hash) else { return };
        self.order.retain(|other| *other != hash);
        if let Some(count) = self.counts.get_mut(&peer) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&peer);
            }
        }
    }

    /// The oldest one of the address that has ended most: one who ends made-up sessions must not have others forgotten.
    fn oldest(&self) -> Option<u64> {
        let (most, _) = self.counts.iter().max_by_key(|(_, count)| **count)?;
        self.order.iter().find(|hash| self.known.get(hash) == Some(most)).copied()
    }
}

impl Ended {
    /// Remembers that this address has ended a session.
    pub fn insert(&self, id: &str, peer: IpAddr) {
        let (hash, peer) = (self.hasher.hash_one(id), counted_address(peer));
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.remove(hash);
        last.known.insert(hash, peer);
        last.order.push_back(hash);
        *last.counts.entry(peer).or_default() += 1;
        if last.order.len() > limits::ENDED_SESSIONS
            && let Some(oldest) = last.oldest()
        {
            last.remove(oldest);
        }
    }

    /// Whether a session has ended, as far as that is remembered.
    pub fn contains(&self, id: &str) -> bool {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        !last.known.is_empty() && last.known.contains_key(&self.hasher.hash_one(id))
    }

    /// A server may give an id to a new session again.
    pub fn remove(&self, id: &str) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if !last.known.is_empty() {
            last.remove(self.hasher.hash_one(id));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use super::*;

    const PEERS: [IpAddr; 2] =
        [IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2))];

    #[test]
    fn the_last_ended_sessions_are_remembered() {
        let ended = Ended::default();
        assert!(!ended.contains("a"));
        ended.insert("a", PEERS[0]);
        ended.insert("a", PEERS[1]);
        assert!(ended.contains("a") && !ended.contains("b"));
        ended.remove("a");
        assert!(!ended.contains("a"));
        ended.insert("a", PEERS[0]);
        for number in 0..limits::ENDED_SESSIONS {
            ended.insert(&number.to_string(), PEERS[0]);
        }
        assert!(!ended.contains("a") && ended.contains("0"));
        let last = ended.last.lock().unwrap();
        assert_eq!((last.order.len(), last.known.len()), (limits::ENDED_SESSIONS, limits::ENDED_SESSIONS));
        assert_eq!(last.counts, HashMap::from([(PEERS[0], limits::ENDED_SESSIONS)]));
    }

    #[test]
    fn one_address_does_not_have_the_sessions_of_another_forgotten() {
        let ended = Ended::default();
        ended.insert("a", PEERS[0]);
        for number in 0..=limits::ENDED_SESSIONS {
            ended.insert(&number.to_string(), PEERS[1]);
        }
        assert!(ended.contains("a") && !ended.contains("0") && !ended.contains("1") && ended.contains("2"));
    }

    #[test]
    fn a_network_of_ipv6_addresses_counts_as_one() {
        let ended = Ended::default();
        ended.insert("a", PEERS[0]);
        ended.insert("b", PEERS[0]);
        let network = Ipv6Addr::from(0x2001_0db8_u128 << 96);
        for number in 0..=limits::ENDED_SESSIONS {
            let address = Ipv6Addr::from(u128::from(network) + u128::try_from(number).unwrap());
            ended.insert(&number.to_string(), address.into());
        }
        assert!(ended.contains("a") && ended.contains("b"), "the sessions of the network make room");
    }
}
