//! Who has which sessions, so that no caller uses up those of others.

use std::{
    collections::{HashMap, HashSet},
    net::{IpAddr, Ipv6Addr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::{identity::Owner, limits};

/// Who has a session: a caller or, where callers are anonymous, the address of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Holder {
    Caller(Owner),
    /// Of IPv6, the network: a host has as many addresses as it likes.
    Address(IpAddr),
}

impl Holder {
    pub(super) fn new(owner: Option<Owner>, peer: IpAddr) -> Self {
        match (owner.filter(|owner| *owner != Owner::ANONYMOUS), peer.to_canonical()) {
            (Some(owner), _) => Self::Caller(owner),
            (None, IpAddr::V6(address)) => {
                let network = u128::from(address) & !u128::from(u64::MAX);
                Self::Address(Ipv6Addr::from(network).into())
            }
            (None, address) => Self::Address(address),
        }
    }

    /// How many sessions it may have. Many clients can share an address, for example that of an ingress.
    fn limit(self) -> usize {
        match self {
            Self::Caller(_) => limits::SESSIONS_OF_A_CALLER,
            Self::Address(_) => limits::SESSIONS_OF_AN_ADDRESS,
        }
    }
}

/// The ids of sessions by their holders.
#[derive(Default)]
pub(super) struct Holders(Mutex<HashMap<Holder, HashSet<Arc<str>>>>);

impl Holders {
    /// Adds a session. If its holder then has too many, all of them are returned, for some to be removed.
    pub(super) fn add(&self, holder: Holder, id: &Arc<str>) -> Option<Vec<Arc<str>>> {
        let mut holders = self.lock();
        let ids = holders.entry(holder).or_default();
        ids.insert(id.clone());
        (ids.len() > holder.limit()).then(|| ids.iter().cloned().collect())
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
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anonymous_callers_are_known_by_their_address_or_network() {
        let holder = |address: &str| Holder::new(Some(Owner::ANONYMOUS), address.parse().unwrap());
        assert_eq!(holder("10.0.0.1"), holder("::ffff:10.0.0.1"));
        assert_ne!(holder("10.0.0.1"), holder("10.0.0.2"));
        assert_eq!(holder("2001:db8::1"), holder("2001:db8::ffff:1"));
        assert_ne!(holder("2001:db8::1"), holder("2001:db8:0:1::1"));
        let ada = Owner::from_text(&"1".repeat(32));
        assert_eq!(
            Holder::new(ada, "10.0.0.1".parse().unwrap()),
            Holder::new(ada, "10.0.0.2".parse().unwrap())
        );
    }
}
