//! Who has which sessions, so that no caller uses up those of others.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::{identity::Holder, limits};

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
