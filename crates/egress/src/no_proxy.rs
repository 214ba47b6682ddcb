//! `NO_PROXY`: the hosts that are connected to directly. It is read as Go's programs read it.

use std::net::IpAddr;

/// The hosts in `NO_PROXY`.
#[derive(Clone, Debug, Default)]
pub(crate) struct NoProxy {
    all: bool,
    entries: Vec<Entry>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Entry {
    /// `10.0.0.0/8`.
    Network { address: IpAddr, bits: u8 },
    /// `10.0.0.1`, with or without a port.
    Address { address: IpAddr, port: Option<u16> },
    /// `.example.com` has its subdomains, `example.com` also itself; with or without a port.
    Domain { suffix: String, itself: bool, port: Option<u16> },
}

impl NoProxy {
    /// The hosts in this text. What Go ignores is ignored.
    pub(crate) fn parse(text: &str) -> Self {
        let mut entries = Vec::new();
        for entry in text.split(',').map(|entry| entry.trim().to_ascii_lowercase()) {
            if entry == "*" {
                return Self { all: true, entries: Vec::new() };
            }
            entries.extend(Entry::parse(&entry));
        }
        Self { all: false, entries }
    }

    /// Whether this host is connected to directly. This machine always is.
    pub(crate) fn contains(&self, host: &str, port: u16) -> bool {
        let host = host.to_ascii_lowercase();
        let address: Option<IpAddr> = host.parse().ok();
        let is_loopback = address.is_some_and(|address| address.to_canonical().is_loopback());
        self.all
            || is_loopback
            || host == "localhost"
            || self.entries.iter().any(|entry| entry.matches(&host, address, port))
    }
}

impl Entry {
    fn parse(text: &str) -> Option<Self> {
        if let Some((address, bits)) = text.split_once('/')
            && let (Ok(address), Ok(bits)) = (address.parse::<IpAddr>(), bits.parse::<u8>())
        {
            let most = if address.is_ipv4() { 32 } else { 128 };
            return (bits <= most).then_some(Self::Network { address, bits });
        }
        let (host, port) = match split_port(text) {
            Some((host, port)) => (host, Some(port.parse().ok()?)),
            None => (text, None),
        };
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        if let Ok(address) = bare.parse() {
            return Some(Self::Address { address, port });
        }
        let name = host.strip_prefix('*').filter(|rest| rest.starts_with('.')).unwrap_or(host);
        match name.strip_prefix('.') {
            _ if name.is_empty() => None,
            Some(_) => Some(Self::Domain { suffix: name.into(), itself: false, port }),
            None => Some(Self::Domain { suffix: format!(".{name}"), itself: true, port }),
        }
    }

    fn matches(&self, host: &str, address: Option<IpAddr>, port: u16) -> bool {
        let at_port = |wanted: Option<u16>| wanted.is_none_or(|wanted| wanted == port);
        match self {
            Self::Network { address: network, bits } => {
                address.is_some_and(|address| is_within(address, *network, *bits))
            }
            Self::Address { address: one, port } => {
                address.is_some_and(|address| address.to_canonical() == one.to_canonical()) && at_port(*port)
            }
            Self::Domain { suffix, itself, port } => {
                (host.ends_with(suffix.as_str()) || (*itself && host == &suffix[1..])) && at_port(*port)
            }
        }
    }
}

/// The host and the port of `host:port`. An address of IPv6 with a port has brackets.
fn split_port(text: &str) -> Option<(&str, &str)> {
    let (host, port) = text.rsplit_once(':')?;
    let is_bracketed = host.starts_with('[') && host.ends_with(']');
    (is_bracketed || !host.contains(':')).then_some((host, port))
}

fn is_within(address: IpAddr, network: IpAddr, bits: u8) -> bool {
    let shared = |one: u128, other: u128, width: u32| {
        let rest = width - u32::from(bits);
        one.checked_shr(rest).unwrap_or_default() == other.checked_shr(rest).unwrap_or_default()
    };
    match (address.to_canonical(), network) {
        (IpAddr::V4(address), IpAddr::V4(network)) => {
            shared(u128::from(u32::from(address)), u128::from(u32::from(network)), 32)
        }
        (IpAddr::V6(address), IpAddr::V6(network)) => shared(u128::from(address), u128::from(network), 128),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_match_as_in_go() {
        let contains = |no_proxy: &str, host: &str, port| NoProxy::parse(no_proxy).contains(host, port);
        for (no_proxy, host, port, expected) in [
            ("", "example.com", 443, false),
            ("", "localhost", 443, true),
            ("", "127.0.0.1", 80, true),
            ("", "::1", 80, true),
            ("", "::ffff:127.0.0.1", 80, true),
            ("*", "example.com", 443, true),
            ("a.example, *", "b.example", 443, true),
            ("example.com", "example.com", 443, true),
            ("example.com", "EXAMPLE.com", 443, true),
            ("example.com", "a.b.example.com", 443, true),
            ("example.com", "notexample.com", 443, false),
            (".example.com", "example.com", 443, false),
            (".example.com", "a.example.com", 443, true),
            ("*.example.com", "a.example.com", 443, true),
            ("*.example.com", "example.com", 443, false),
            ("example.com:8443", "example.com", 443, false),
            ("example.com:8443", "a.example.com", 8443, true),
            (" .svc ,.cluster.local", "files.ns.svc", 80, true),
            ("10.0.0.0/8", "10.1.2.3", 80, true),
            ("10.0.0.0/8", "11.1.2.3", 80, false),
            ("10.0.0.0/8", "::ffff:10.1.2.3", 80, true),
            ("0.0.0.0/0", "8.8.8.8", 80, true),
            ("10.0.0.0/33", "10.0.0.1", 80, false),
            ("fd00::/8", "fd12::1", 80, true),
            ("fd00::/8", "fe80::1", 80, false),
            ("10.0.0.1", "10.0.0.1", 80, true),
            ("10.0.0.1:81", "10.0.0.1", 80, false),
            ("[fd00::1]:81", "fd00::1", 81, true),
            ("fd00::1", "fd00::1", 80, true),
            ("10.0.0.1", "example.com", 80, false),
            (",,:80,", "example.com", 80, false),
        ] {
            assert_eq!(contains(no_proxy, host, port), expected, "NO_PROXY={no_proxy:?}, {host}:{port}");
        }
    }
}
