//! Headers that belong to one connection, those about where a request comes from, and those of MCP.
//!
//! They are statics: a constant is built at each use, and dropped after it, which takes longer than to look it up in a map.

use std::net::{IpAddr, SocketAddr};

use http::{HeaderMap, HeaderName, HeaderValue, header};
use skep_mcp::header as mcp;

/// The revision, on every request since 2025-06-18.
pub static MCP_PROTOCOL_VERSION: HeaderName = HeaderName::from_static(mcp::MCP_PROTOCOL_VERSION);
/// The session, until 2025-11-25.
pub static MCP_SESSION_ID: HeaderName = HeaderName::from_static(mcp::MCP_SESSION_ID);
pub(crate) static MCP_METHOD: HeaderName = HeaderName::from_static(mcp::MCP_METHOD);
pub(crate) static MCP_NAME: HeaderName = HeaderName::from_static(mcp::MCP_NAME);

const FOR: &str = "x-forwarded-for";
const HOST: &str = "x-forwarded-host";
const PROTO: &str = "x-forwarded-proto";
pub(crate) static FORWARDED_FOR: HeaderName = HeaderName::from_static(FOR);
pub(crate) static FORWARDED_HOST: HeaderName = HeaderName::from_static(HOST);
pub(crate) static FORWARDED_PROTO: HeaderName = HeaderName::from_static(PROTO);

/// Whether a header is about where a request comes from, as the proxies on its way claim.
pub(crate) fn is_forwarded(name: &HeaderName) -> bool {
    matches!(
        name.as_str(),
        "forwarded"
            | FOR
            | HOST
            | PROTO
            | "x-forwarded-port"
            | "x-forwarded-prefix"
            | "x-forwarded-server"
            | "x-real-ip"
            | "x-client-ip"
            | "true-client-ip"
    )
}

/// The name that servers which know no difference between `_` and `-`, as those of CGI and WSGI, take this one for.
pub(crate) fn folded(name: &HeaderName) -> Option<HeaderName> {
    name.as_str().contains('_').then(|| name.as_str().replace('_', "-").parse().ok()).flatten()
}

/// Sets a header, in place of all that a server could take for it.
pub(crate) fn set_alone(headers: &mut HeaderMap, name: &HeaderName, value: HeaderValue) {
    let wanted = folded(name).unwrap_or_else(|| name.clone());
    let alike: Vec<HeaderName> = headers
        .keys()
        .filter(|other| *other == wanted || folded(other).as_ref() == Some(&wanted))
        .cloned()
        .collect();
    alike.iter().for_each(|other| drop(headers.remove(other)));
    headers.insert(name, value);
}

/// Strips what belongs to one connection, by standard or because the `Connection` header names it.
pub fn strip_hop_by_hop(headers: &mut HeaderMap) {
    // Most messages have none. To look at each name once takes less time than to look up each of these.
    let found: Vec<HeaderName> = headers.keys().filter(|name| is_hop_by_hop(name)).cloned().collect();
    if found.is_empty() {
        return;
    }
    let named: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .flat_map(|value| value.as_bytes().split(|byte| *byte == b','))
        .filter_map(|name| HeaderName::from_bytes(name.trim_ascii()).ok())
        .collect();
    for name in found.iter().chain(&named) {
        headers.remove(name);
    }
}

fn is_hop_by_hop(name: &HeaderName) -> bool {
    matches!(
        name.as_str(),
        "connection"
            | "keep-alive"
            | "proxy-connection"
            | "proxy-authenticate"
            | "proxy-authorization"
            | "te"
            | "trailer"
            | "transfer-encoding"
            | "upgrade"
    )
}

/// The address of the client, as a proxy in front names it. Each proxy appends the address of its own peer, so the last one is that of
/// the nearest, and all others may be a stranger's. `None`: it names none.
pub fn last_forwarded(headers: &HeaderMap) -> Option<IpAddr> {
    let last = headers.get_all(&FORWARDED_FOR).iter().next_back()?.to_str().ok()?.rsplit(',').next()?.trim();
    let bare = last.trim_start_matches('[').trim_end_matches(']');
    bare.parse().ok().or_else(|| last.parse::<SocketAddr>().ok().map(|address| address.ip()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_the_addresses_that_proxies_name_the_last_is_no_strangers() {
        let last = |values: &[&'static str]| {
            let values = values.iter().map(|value| (FORWARDED_FOR.clone(), value.parse().unwrap()));
            last_forwarded(&values.collect()).map(|address| address.to_string())
        };
        for (values, expected) in [
            (&["198.51.100.7"][..], Some("198.51.100.7")),
            (&["10.0.0.1, 203.0.113.5 ,198.51.100.7"], Some("198.51.100.7")),
            (&["10.0.0.1", "203.0.113.5"], Some("203.0.113.5")),
            (&["198.51.100.7:4711"], Some("198.51.100.7")),
            (&["[2001:db8::1]:4711"], Some("2001:db8::1")),
            (&["[2001:db8::1]"], Some("2001:db8::1")),
            (&["2001:db8::1"], Some("2001:db8::1")),
            (&["198.51.100.7, unknown"], None),
            (&[""], None),
            (&[], None),
        ] {
            assert_eq!(last(values).as_deref(), expected, "{values:?}");
        }
    }
}
