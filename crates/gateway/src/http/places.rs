//! How many connections there are: in all, and of each peer.
//!
//! Beyond the limit, a few connections are still accepted, for health probes only: strangers that hold all others must not
//! make the kubelet restart the process.

use std::{net::SocketAddr, sync::Arc};

use skep_auth::{Place, Places};

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
pub(super) struct Connections {
    usual: Arc<Places>,
    for_probes: Arc<Places>,
}

/// The place of one connection, which is free again when this is dropped.
pub(super) struct ConnectionPlace {
    _place: Place,
    /// Whether it is for probes only.
    pub(super) is_reserved: bool,
    /// The largest head of its requests.
    pub(super) head: usize,
}

impl Connections {
    pub(super) fn new(limits: ConnectionLimits) -> Self {
        let ConnectionLimits { all, of_an_address, for_probes, for_probes_of_an_address } = limits;
        Self {
            usual: Places::new(all, of_an_address),
            for_probes: Places::new(for_probes, for_probes_of_an_address),
        }
    }

    /// A place for a connection of this peer, or for its probes, if there is one.
    pub(super) fn take(&self, peer: SocketAddr) -> Option<ConnectionPlace> {
        if let Some(place) = self.usual.take(peer.ip()) {
            let is_crowded = place.taken() > limits::LARGE_HEADS;
            let head = if is_crowded { limits::SMALL_HEAD } else { limits::HEAD };
            return Some(ConnectionPlace { _place: place, is_reserved: false, head });
        }
        let place = self.for_probes.take(peer.ip())?;
        Some(ConnectionPlace { _place: place, is_reserved: true, head: limits::SMALL_HEAD })
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
        let places = Connections::new(ConnectionLimits {
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
    }

    #[test]
    fn the_heads_of_very_many_connections_are_small() {
        let places = Connections::new(ConnectionLimits::default());
        let held: Vec<_> = (0..limits::LARGE_HEADS).filter_map(|_| places.take(peer(1))).collect();
        assert!(held.iter().all(|place| place.head == limits::HEAD));
        let strangers = limits::LARGE_HEADS * limits::HEAD;
        let others = (limits::CONNECTIONS - limits::LARGE_HEADS) * limits::SMALL_HEAD;
        assert!(strangers + others < 256 << 20, "half of what a virtual server has by default");
        assert_eq!(places.take(peer(2)).unwrap().head, limits::SMALL_HEAD);
    }
}
