//! Public addresses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whether an address is on the public internet. Others belong to a network, a node or a metadata service to which an
/// outsider must not be able to direct requests.
pub(super) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => v4_is_public(address),
        IpAddr::V6(address) => match embedded(address) {
            Some(address) => v4_is_public(address),
            None => v6_is_public(address),
        },
    }
}

fn v4_is_public(address: Ipv4Addr) -> bool {
    let [first, second, third, _] = address.octets();
    // Carrier-grade NAT; one cloud has its metadata service in this range.
    let shared = first == 100 && (64..128).contains(&second);
    let protocols = (first, second, third) == (192, 0, 0);
    let benchmarks = first == 198 && (second & 0xfe) == 18;
    !(first == 0
        || first >= 240
        || shared
        || protocols
        || benchmarks
        || address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_multicast()
        || address.is_documentation())
}

/// The embedded IPv4 address: mapped, NAT64 or 6to4.
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let octets = address.octets();
    match address.segments() {
        [0, 0, 0, 0, 0, 0xffff, ..] | [0x64, 0xff9b, 0, 0, 0, 0, ..] => {
            Some(Ipv4Addr::new(octets[12], octets[13], octets[14], octets[15]))
        }
        [0x2002, ..] => Some(Ipv4Addr::new(octets[2], octets[3], octets[4], octets[5])),
        _ => None,
    }
}

/// Global unicast, 2000::/3, without its parts for documentation and tunnels.
fn v6_is_public(address: Ipv6Addr) -> bool {
    let [first, second, ..] = address.segments();
    let documentation = (first, second) == (0x2001, 0xdb8) || first == 0x3fff;
    let teredo = (first, second) == (0x2001, 0);
    (first & 0xe000) == 0x2000 && !documentation && !teredo
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_and_special_addresses_are_not_public() {
        let public = |text: &str| is_public(text.parse().unwrap());
        for address in [
            "8.8.8.8",
            "172.32.0.1",
            "100.63.255.255",
            "100.128.0.1",
            "198.17.255.255",
            "198.20.0.1",
            "2606:4700::1111",
            "::ffff:8.8.8.8",
            "64:ff9b::808:808",
        ] {
            assert!(public(address), "{address}");
        }
        for address in [
            "0.0.0.0",
            "10.0.0.1",
            "100.64.0.1",
            "100.100.100.200",
            "100.127.255.255",
            "127.0.0.1",
            "127.8.8.8",
            "169.254.169.254",
            "172.16.0.1",
            "192.0.0.8",
            "192.168.0.1",
            "198.18.0.1",
            "198.19.255.255",
            "203.0.113.7",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::127.0.0.1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::1",
            "2002:7f00:1::",
            "2001::1",
            "2001:db8::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ] {
            assert!(!public(address), "{address}");
        }
    }
}
