//! Addresses of servers elsewhere: a proxy must not become a way into the node, the cluster's own API, or the metadata
//! service of a cloud.
//!
//! Names are not resolved here: what a name leads to is for the proxy to find out, at the time of each request.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::checks;

/// Names that are refused, with everything below them.
const REFUSED: [&str; 5] = [
    "localhost",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
    "metadata.google.internal",
];
/// Names of the cluster, which must be allowed. Those that end in `.svc` are let through, as they always were.
const CLUSTER: &str = "cluster.local";
/// The prefix under which IPv4 addresses are reached through NAT64.
const NAT64: [u16; 6] = [0x64, 0xff9b, 0, 0, 0, 0];

/// What an address may be used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    /// Always.
    Public,
    /// Where it is said to be allowed.
    Private,
    /// Never.
    Refused,
}

/// What is wrong with a URL as the address of a server elsewhere. `flag` is the field that allows private ones.
pub(crate) fn check(field: &str, url: &str, allow_private: bool, flag: &str) -> Result<(), String> {
    let uri = checks::url(field, url)?;
    let host = uri.host().unwrap_or_default();
    let reach = match address(host).map_err(|()| {
        format!("{field}: {host:?} is not an address: write the four numbers in full, as in 203.0.113.7")
    })? {
        Some(address) => reach_of_address(address),
        None => reach_of_name(host),
    };
    match reach {
        Reach::Public => Ok(()),
        Reach::Private if allow_private => Ok(()),
        Reach::Private => {
            Err(format!("{field}: {host:?} is private: set {flag} if the server is meant to be there"))
        }
        Reach::Refused => Err(format!(
            "{field}: {host:?} is the node, the cluster's own API or a metadata service: name another server"
        )),
    }
}

/// The address that a host is, if it is not a name. Shortened and octal forms are refused: programs read them
/// differently, and some would see the node where others see a name.
fn address(host: &str) -> Result<Option<IpAddr>, ()> {
    if let Some(inner) = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        return inner.parse().map(|address| Some(IpAddr::V6(address))).map_err(|_| ());
    }
    let host = host.strip_suffix('.').unwrap_or(host);
    let last = host.rsplit('.').next().unwrap_or_default();
    let hex = last.strip_prefix("0x").or_else(|| last.strip_prefix("0X"));
    let numeric = hex.is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
        || (!last.is_empty() && last.bytes().all(|byte| byte.is_ascii_digit()));
    if !numeric {
        return if host.contains('%') { Err(()) } else { Ok(None) };
    }
    host.parse().map(|address| Some(IpAddr::V4(address))).map_err(|_| ())
}

fn reach_of_address(address: IpAddr) -> Reach {
    match address {
        IpAddr::V4(address) => reach_of_v4(address),
        IpAddr::V6(address) => match embedded_v4(address) {
            Some(address) => reach_of_v4(address),
            None => reach_of_v6(address),
        },
    }
}

/// The IPv4 address that this one stands for.
fn embedded_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let segments = address.segments();
    let nat64 = (segments[..6] == NAT64).then(|| {
        let [.., a, b, c, d] = address.octets();
        Ipv4Addr::new(a, b, c, d)
    });
    address.to_ipv4_mapped().or(nat64)
}

fn reach_of_v4(address: Ipv4Addr) -> Reach {
    let [first, second, ..] = address.octets();
    if first == 0
        || address.is_loopback()
        || address.is_link_local()
        || address.is_multicast()
        || address.is_broadcast()
    {
        return Reach::Refused;
    }
    // Shared by a provider and its customers, and where one cloud has its metadata service.
    let shared = first == 100 && (64..128).contains(&second);
    if address.is_private() || shared { Reach::Private } else { Reach::Public }
}

fn reach_of_v6(address: Ipv6Addr) -> Reach {
    if address.is_unspecified()
        || address.is_loopback()
        || address.is_unicast_link_local()
        || address.is_multicast()
    {
        return Reach::Refused;
    }
    if address.is_unique_local() { Reach::Private } else { Reach::Public }
}

fn reach_of_name(host: &str) -> Reach {
    let host = host.to_ascii_lowercase();
    let host = host.strip_suffix('.').unwrap_or(&host);
    let within = |name: &str| host == name || host.strip_suffix(name).is_some_and(|rest| rest.ends_with('.'));
    if REFUSED.into_iter().any(within) {
        return Reach::Refused;
    }
    if within(CLUSTER) { Reach::Private } else { Reach::Public }
}

#[cfg(test)]
mod tests {
    fn check(host: &str, allow_private: bool) -> Result<(), String> {
        super::check("remoteUrl", &format!("https://{host}/mcp"), allow_private, "allowPrivateEndpoint")
    }

    #[test]
    fn servers_elsewhere_are_let_through() {
        let hosts = [
            "api.example.com",
            "api.example.com:8443",
            "203.0.113.7",
            "[2001:db8::7]:443",
            "tools.team.svc",
            "tools.team.svc:8080",
            "mylocalhost.example",
            "localhost.example.com",
            "172.32.0.1",
            "100.128.0.1",
            "3com.example",
            "user@api.example.com",
        ];
        for host in hosts {
            assert_eq!(check(host, false), Ok(()), "{host}");
        }
    }

    #[test]
    fn private_addresses_must_be_allowed() {
        let hosts = [
            "10.0.0.1",
            "172.16.0.1",
            "172.31.255.254",
            "192.168.1.1:8080",
            "100.100.100.200",
            "[fd00::1]",
            "[fc00::]",
            "tools.team.svc.cluster.local",
            "tools.team.svc.cluster.local.",
            "CLUSTER.local",
            "[::ffff:10.0.0.1]",
            "[64:ff9b::c0a8:101]",
            "10.0.0.1.",
        ];
        for host in hosts {
            let error = check(host, false).unwrap_err();
            assert!(
                error.starts_with("remoteUrl: ") && error.contains("set allowPrivateEndpoint"),
                "{error}"
            );
            assert_eq!(check(host, true), Ok(()), "{host}");
        }
    }

    #[test]
    fn the_node_the_api_and_metadata_services_are_never_let_through() {
        let hosts = [
            "localhost",
            "LOCALHOST:80",
            "a.localhost",
            "localhost.",
            "127.0.0.1",
            "127.9.9.9",
            "0.0.0.0",
            "0.1.2.3",
            "169.254.169.254",
            "[::]",
            "[::1]",
            "[fe80::1]",
            "[febf::1]",
            "[::ffff:127.0.0.1]",
            "[::ffff:7f00:1]",
            "[64:ff9b::a9fe:a9fe]",
            "224.0.0.1",
            "255.255.255.255",
            "[ff02::1]",
            "kubernetes.default",
            "kubernetes.default.svc",
            "kubernetes.default.svc.cluster.local",
            "x.kubernetes.default.svc",
            "metadata.google.internal",
            "a.metadata.google.internal",
            "user@127.0.0.1",
            "user:pass@localhost",
        ];
        for host in hosts {
            let error = check(host, true).expect_err(host);
            assert!(error.contains("name another server"), "{error}");
        }
    }

    #[test]
    fn addresses_that_programs_read_differently_are_refused() {
        for host in [
            "2130706433",
            "0x7f000001",
            "127.1",
            "0177.0.0.1",
            "127.0.0.0x1",
            "1.2.3.4.5",
            "256.1.1.1",
            "%6cocalhost",
        ] {
            assert!(check(host, true).is_err(), "{host}");
        }
    }
}
