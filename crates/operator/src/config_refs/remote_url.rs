//! URLs of remote servers: a proxy must not give access to the node, the cluster's own API or a cloud's metadata
//! service.
//!
//! Names are not resolved here: the proxy does so for each request.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use skep_config::{FieldError, FieldPath};

use super::checks;

/// Names that are forbidden, with all their subdomains.
const FORBIDDEN: [&str; 5] = [
    "localhost",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
    "metadata.google.internal",
];
/// Names of the cluster, which must be allowed. Those that end in `.svc` pass, as they do with ToolHive.
const CLUSTER: &str = "cluster.local";
/// The prefix under which IPv4 addresses are reached through NAT64.
const NAT64: [u16; 6] = [0x64, 0xff9b, 0, 0, 0, 0];

/// Whether a host may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HostClass {
    /// Always.
    Public,
    /// Where private endpoints are allowed.
    Private,
    /// Never.
    Forbidden,
}

/// Checks that a URL can be the address of a remote server. `flag` is the field that allows private ones.
pub(crate) fn check(
    field: impl Into<FieldPath>,
    url: &str,
    allow_private: bool,
    flag: &str,
) -> Result<(), FieldError> {
    let field = field.into();
    let uri = checks::url(field.clone(), url)?;
    let host = uri.host().unwrap_or_default();
    let class = match ip_address(host) {
        Ok(Some(address)) => class_of_address(address),
        Ok(None) => class_of_name(host),
        Err(()) => {
            let message =
                format!("{host:?} is not an IP address: write its four numbers in full, such as 203.0.113.7");
            return Err(FieldError::new(field, message));
        }
    };
    let message = match class {
        HostClass::Public => return Ok(()),
        HostClass::Private if allow_private => return Ok(()),
        HostClass::Private => format!("{host:?} is private: set {flag} to allow it"),
        HostClass::Forbidden => {
            format!("{host:?} is the node, the cluster's own API or a metadata service: use another server")
        }
    };
    Err(FieldError::new(field, message))
}

/// The IP address that a host is, if it is not a name. Shortened and octal forms are rejected: programs parse them
/// differently, and some would connect to the node where others see a name.
fn ip_address(host: &str) -> Result<Option<IpAddr>, ()> {
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

fn class_of_address(address: IpAddr) -> HostClass {
    match address {
        IpAddr::V4(address) => class_of_v4(address),
        IpAddr::V6(address) => match embedded_v4(address) {
            Some(address) => class_of_v4(address),
            None => class_of_v6(address),
        },
    }
}

/// The IPv4 address that this one embeds.
fn embedded_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let segments = address.segments();
    let nat64 = (segments[..6] == NAT64).then(|| {
        let [.., a, b, c, d] = address.octets();
        Ipv4Addr::new(a, b, c, d)
    });
    address.to_ipv4_mapped().or(nat64)
}

fn class_of_v4(address: Ipv4Addr) -> HostClass {
    let [first, second, ..] = address.octets();
    if first == 0
        || address.is_loopback()
        || address.is_link_local()
        || address.is_multicast()
        || address.is_broadcast()
    {
        return HostClass::Forbidden;
    }
    // Carrier-grade NAT, where one cloud has its metadata service.
    let shared = first == 100 && (64..128).contains(&second);
    if address.is_private() || shared { HostClass::Private } else { HostClass::Public }
}

fn class_of_v6(address: Ipv6Addr) -> HostClass {
    if address.is_unspecified()
        || address.is_loopback()
        || address.is_unicast_link_local()
        || address.is_multicast()
    {
        return HostClass::Forbidden;
    }
    if address.is_unique_local() { HostClass::Private } else { HostClass::Public }
}

fn class_of_name(host: &str) -> HostClass {
    let host = host.to_ascii_lowercase();
    let host = host.strip_suffix('.').unwrap_or(&host);
    let within = |name: &str| host == name || host.strip_suffix(name).is_some_and(|rest| rest.ends_with('.'));
    if FORBIDDEN.into_iter().any(within) {
        return HostClass::Forbidden;
    }
    if within(CLUSTER) { HostClass::Private } else { HostClass::Public }
}

#[cfg(test)]
mod tests {
    fn check(host: &str, allow_private: bool) -> Result<(), String> {
        let url = format!("https://{host}/mcp");
        super::check("remoteUrl", &url, allow_private, "allowPrivateEndpoint")
            .map_err(|error| error.to_string())
    }

    #[test]
    fn public_servers_are_allowed() {
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
            "100.63.255.255",
            "100.128.0.1",
            "3com.example",
            "user@api.example.com",
        ];
        for host in hosts {
            assert_eq!(check(host, false), Ok(()), "{host}");
        }
    }

    #[test]
    fn private_hosts_need_the_flag() {
        let hosts = [
            "10.0.0.1",
            "172.16.0.1",
            "172.31.255.254",
            "192.168.1.1:8080",
            "100.64.0.0",
            "100.100.100.200",
            "100.127.255.255",
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
    fn the_node_the_api_and_metadata_services_are_never_allowed() {
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
            assert!(error.contains("use another server"), "{error}");
        }
    }

    #[test]
    fn addresses_that_programs_parse_differently_are_rejected() {
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
