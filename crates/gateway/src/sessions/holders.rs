//! Who has which sessions, so that no caller uses up those of others.

use std::{
    collections::{HashMap, HashSet},
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use skep_auth::counted_address;

use crate::{identity::Owner, limits};

/// Who has a session: a caller or, where callers are anonymous, the address of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Holder {
    /// A caller that is known.
    Caller(Owner),
    /// The address of an anonymous one.
    Address(IpAddr),
}

impl Holder {
    /// The holder of what a request of this caller needs.
    pub fn new(owner: Option<Owner>, peer: IpAddr) -> Self {
        match owner.filter(|owner| *owner != Owner::ANONYMOUS) {
            Some(owner) => Self::Caller(owner),
            None => Self::Address(counted_address(peer)),
        }
    }
}

/// How many sessions one holder may have. Many clients can share an address, for example that of an ingress.
#[derive(Clone, Copy, Debug)]
pub struct Shares {
    /// Of a caller that is known.
    pub caller: usize,
    /// Of an address, where callers are anonymous.
    pub address: usize,
}

impl Default for Shares {
    fn default() -> Self {
        Self { caller: limits::SESSIONS_OF_A_CALLER, address: limits::SESSIONS_OF_AN_ADDRESS }
    }
}

impl Shares {
    /// How many this holder may have.
    pub fn of(self, holder: Holder) -> usize {
        match holder {
            Holder::Caller(_) => self.caller,
            Holder::Address(_) => self.address,
        }
    }
}

/// The ids of sessions by their holders.
pub(super) struct Holders {
    ids: Mutex<HashMap<Holder, HashSet<Arc<str>>>>,
    shares: Shares,
}

impl Holders {
    pub(super) fn new(shares: Shares) -> Self {
        Self { ids: Mutex::default(), shares }
    }

    /// Adds a session. If its holder then has too many, all of them are returned, for some to be removed.
    pub(super) fn add(&self, holder: Holder, id: &Arc<str>) -> Option<Vec<Arc<str>>> {
        let mut holders = self.lock();
        let ids = holders.entry(holder).or_default();
        ids.insert(id.clone());
        (ids.len() > self.shares.of(holder)).then(|| ids.iter().cloned().collect())
    }

    pub(super) fn remove(&self, holder: Holder, id: &str) {
        let mut holders = self.lock();
        if let Some(ids) = holders.get_mut(&holder) {
            ids.remove(id);
            if ids.is_empty() {
                holders.remove(&holder);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Holder, HashSet<Arc<str>>>> {
        self.ids.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_is_known_by_itself_and_an_anonymous_one_by_its_address() {
        let [one, two] = ["10.0.0.1", "10.0.0.2"].map(|address| address.parse().unwrap());
        let (ada, bob) = (Owner::from_text(&"1".repeat(32)), Owner::from_text(&"2".repeat(32)));
        assert_eq!(Holder::new(ada, one), Holder::new(ada, two));
        assert_ne!(Holder::new(ada, one), Holder::new(bob, one));
        assert_eq!(Holder::new(Some(Owner::ANONYMOUS), one), Holder::new(None, one));
        assert_ne!(Holder::new(None, one), Holder::new(None, two));
    }
}
