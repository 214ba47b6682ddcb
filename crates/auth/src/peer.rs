//! Peers, as far as limits are concerned.

use std::net::{IpAddr, Ipv6Addr};

/// The address that limits count by. Of IPv6 it is the network: a host has as many addresses in it as it likes.
pub fn counted_address(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from(u128::from(address) & !u128::from(u64::MAX)).into(),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_one_network_count_as_one_peer() {
        let counted = |address: &str| counted_address(address.parse().unwrap());
        assert_eq!(counted("10.0.0.1"), counted("::ffff:10.0.0.1"));
        assert_ne!(counted("10.0.0.1"), counted("10.0.0.2"));
        assert_eq!(counted("2001:db8::1"), counted("2001:db8::ffff:1"));
        assert_ne!(counted("2001:db8::1"), counted("2001:db8:0:1::1"));
    }
}
