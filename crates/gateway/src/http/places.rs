//! How many connections there are: in all, and of each peer.
//!
//! Beyond the limit, a few connections are still accepted, for health probes only: strangers that hold all others must not
//! make the kubelet restart the process.

use std::{
    collections::HashMap,
    net::{IpAddr, SocketAddr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use skep_auth::counted_address;

use crate::limits;

/// How many connections there may be.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionLimits {
    /// All connections.
    pub all: usize,
    /// Those of one address.
    pub of_an_address: usize,
    /// Those for probes, in addition.
    pub for_probes: usize,
    /// Those for probes of one address.
    pub for_probes_of_an_address: usize,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self {
            all: limits::CONNECTIONS,
            of_an_address: limits::CONNECTIONS_OF_AN_ADDRESS,
            for_probes: limits::PROBE_CONNECTIONS,
            for_probes_of_an_address: limits::PROBE_CONNECTIONS_OF_AN_ADDRESS,
        }
    }
}

/// The connections of a listener.
pub(super) struct Places {
    limits: ConnectionLimits,
    taken: Mutex<Taken>,
}

#[derive(Default)]
struct Taken {
    usual: Count,
    reserved: Count,
}

#[derive(Default)]
struct Count {
    all: usize,
    of_peers: HashMap<IpAddr, usize>,
}

/// The place of one connection, which is free again when this is dropped.
pub(super) struct Place {
    places: Arc<Places>,
    peer: IpAddr,
    /// Whether it is for probes only.
    pub(super) is_reserved: bool,
}

impl Places {
    pub(super) fn new(limits: ConnectionLimits) -> Arc<Self> {
        Arc::new(Self { limits, taken: Mutex::default() })
    }

    /// A place for a connection of this peer, or for its probes, if there is one.
    pub(super) fn take(self: &Arc<Self>, peer: SocketAddr) -> Option<Place> {
        let peer = counted_address(peer.ip());
        let ConnectionLimits { all, of_an_address, for_probes, for_probes_of_an_address } = self.limits;
        let mut taken = self.lock();
        let is_reserved = !taken.usual.add(peer, all, of_an_address);
        if is_reserved && !taken.reserved.add(peer, for_probes, for_probes_of_an_address) {
            return None;
        }
        Some(Place { places: self.clone(), peer, is_reserved })
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Count {
    fn add(&mut self, peer: IpAddr, limit: usize, limit_of_a_peer: usize) -> bool {
        let of_peer = self.of_peers.get(&peer).copied().unwrap_or_default();
        if self.all >= limit || of_peer >= limit_of_a_peer {
            return false;
        }
        self.all += 1;
        self.of_peers.insert(peer, of_peer + 1);
        true
    }

    fn remove(&mut self, peer: IpAddr) {
        self.all -= 1;
        if let Some(count) = self.of_peers.get_mut(&peer) {
            *count -= 1;
            if *count == 0 {
                self.of_peers.remove(&peer);
            }
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.lock();
        if self.is_reserved { taken.reserved.remove(self.peer) } else { taken.usual.remove(self.peer) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(last: u8) -> SocketAddr {
        ([10, 0, 0, last], 1000).into()
    }

    #[test]
    fn a_peer_takes_a_part_and_probes_have_places_of_their_own() {
        let places = Places::new(ConnectionLimits {
            all: 4,
            of_an_address: 3,
            for_probes: 2,
            for_probes_of_an_address: 1,
        });
        let usual = |peer| places.take(peer).filter(|place| !place.is_reserved);
        let mut held: Vec<_> = (0..3).filter_map(|_| usual(peer(1))).collect();
        assert_eq!(held.len(), 3);
        let probe = places.take(peer(1)).unwrap();
        assert!(probe.is_reserved, "it has its part");
        assert!(places.take(peer(1)).is_none(), "and its reserve");
        held.extend(usual(peer(2)));
        assert_eq!(held.len(), 4);
        let other = places.take(peer(3)).unwrap();
        assert!(other.is_reserved, "all are taken");
        assert!(places.take(peer(4)).is_none(), "also those for probes");
        drop((held, probe, other));
        assert!(usual(peer(4)).is_some());
        assert!(places.lock().usual.of_peers.is_empty() && places.lock().reserved.of_peers.is_empty());
    }
}
