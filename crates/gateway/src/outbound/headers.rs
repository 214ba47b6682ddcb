//! The headers of a request to a server.

use std::{
    io::Write,
    net::{IpAddr, SocketAddr},
};

use http::{HeaderMap, HeaderName, HeaderValue, header};

use super::Target;
use crate::headers::{FORWARDED_FOR, FORWARDED_HOST, FORWARDED_PROTO, folded, is_forwarded};

/// How many headers a request for the server has more than that of the client.
const ADDED: usize = 3;

/// The headers of a request for the server, by those of the client, of which the hop-by-hop headers have already been stripped. `Host`
/// is that of the connection, which adds it.
pub fn outgoing(headers: &HeaderMap, target: &Target, peer: SocketAddr) -> HeaderMap {
    let mut outgoing = HeaderMap::with_capacity(headers.len() + ADDED);
    for (name, value) in headers {
        let is_dropped = |name: &HeaderName| is_replaced(name) || (target.remote && is_override(name));
        if !is_dropped(name) && !folded(name).is_some_and(|name| is_dropped(&name)) {
            outgoing.append(name.clone(), value.clone());
        }
    }
    // Where a client claims to come from is not trusted; the peer of the connection is.
    if let Some(address) = address(peer.ip()) {
        outgoing.insert(&FORWARDED_FOR, address);
    }
    if target.remote {
        outgoing.insert(&FORWARDED_PROTO, scheme(target));
    } else {
        outgoing.insert(&FORWARDED_PROTO, HeaderValue::from_static("http"));
        if let Some(host) = headers.get(header::HOST) {
            outgoing.insert(&FORWARDED_HOST, host.clone());
        }
    }
    outgoing
}

/// Whether the server gets no such header, or another one.
fn is_replaced(name: &HeaderName) -> bool {
    // Comparing with names takes longer than with texts.
    matches!(name.as_str(), "host" | "content-length" | "expect") || is_forwarded(name)
}

/// Whether some servers take another path or method from it. A remote server gets the proxy's credentials, and the caller chooses neither.
fn is_override(name: &HeaderName) -> bool {
    matches!(
        name.as_str(),
        "x-original-url"
            | "x-rewrite-url"
            | "x-original-uri"
            | "x-http-method-override"
            | "x-http-method"
            | "x-method-override"
    )
}

/// Allocated once, as each request has it.
fn address(ip: IpAddr) -> Option<HeaderValue> {
    let mut text = [0; "ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255".len()];
    let length = match ip {
        IpAddr::V4(ip) => write_octets(ip.octets(), &mut text),
        IpAddr::V6(ip) => {
            let mut rest = &mut text[..];
            write!(rest, "{ip}").ok()?;
            let unused = rest.len();
            text.len() - unused
        }
    };
    HeaderValue::from_bytes(&text[..length]).ok()
}

/// Writes an address of IPv4, and returns its length. Formatting takes ten times as long.
fn write_octets(octets: [u8; 4], text: &mut [u8]) -> usize {
    let mut length = 0;
    let mut push = |byte| {
        text[length] = byte;
        length += 1;
    };
    for (index, octet) in octets.into_iter().enumerate() {
        if index > 0 {
            push(b'.');
        }
        if octet >= 100 {
            push(b'0' + octet / 100);
        }
        if octet >= 10 {
            push(b'0' + octet / 10 % 10);
        }
        push(b'0' + octet % 10);
    }
    length
}

fn scheme(target: &Target) -> HeaderValue {
    HeaderValue::from_str(target.scheme.as_str()).unwrap_or(HeaderValue::from_static("http"))
}

#[cfg(test)]
mod tests {
    use skep_config::run_config::Transport;

    use super::*;
    use crate::headers::strip_hop_by_hop;

    #[test]
    fn a_client_can_neither_forge_forwarding_headers_nor_strip_others() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("connection", "close, X-Secret"),
            ("x-secret", "1"),
            ("x-forwarded-for", "10.0.0.1"),
            ("forwarded", "for=10.0.0.1"),
            ("x-real-ip", "10.0.0.1"),
            ("host", "proxy.example"),
            ("transfer-encoding", "chunked"),
            ("accept", "application/json"),
        ] {
            headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        strip_hop_by_hop(&mut headers);
        let headers = outgoing(&headers, &Target::own("server", 80).unwrap(), ([192, 0, 2, 7], 1).into());
        let mut left: Vec<_> =
            headers.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect();
        left.sort_unstable();
        let expected = [
            ("accept", "application/json"),
            ("x-forwarded-for", "192.0.2.7"),
            ("x-forwarded-host", "proxy.example"),
            ("x-forwarded-proto", "http"),
        ];
        assert_eq!(left, expected);
    }

    #[test]
    fn no_forged_header_is_sent_however_often_and_others_are_sent_as_often_as_they_came() {
        let forged = [
            "forwarded",
            "x-forwarded-for",
            "x-forwarded-host",
            "x-forwarded-proto",
            "x-real-ip",
            "content-length",
        ];
        let mut headers = HeaderMap::new();
        for name in forged {
            for value in ["10.0.0.1", "10.0.0.2", "10.0.0.3"] {
                headers.append(HeaderName::from_static(name), HeaderValue::from_static(value));
                headers.append("mcp-param-region", HeaderValue::from_static(value));
            }
        }
        let remote = Target::remote("https://server.example/mcp", Transport::StreamableHttp).unwrap();
        for (target, scheme) in [(Target::own("server", 80).unwrap(), "http"), (remote, "https")] {
            let sent = outgoing(&headers, &target, ([192, 0, 2, 7], 1).into());
            assert_eq!(sent.get_all("mcp-param-region"), headers.get_all("mcp-param-region"));
            let mut others: Vec<_> = sent.iter().filter(|(name, _)| *name != "mcp-param-region").collect();
            others.sort_unstable_by_key(|(name, _)| name.as_str());
            let others: Vec<_> =
                others.into_iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect();
            assert_eq!(others, [("x-forwarded-for", "192.0.2.7"), ("x-forwarded-proto", scheme)]);
        }
    }

    #[test]
    fn what_a_server_could_take_for_a_header_of_the_proxy_is_not_sent() {
        let forged = [
            "x_forwarded_for",
            "x_real-ip",
            "x-forwarded-prefix",
            "x-forwarded-port",
            "true-client-ip",
            "x-client-ip",
            "expect",
        ];
        let overrides = ["x-original-url", "x_rewrite_url", "x-http-method-override"];
        let names = forged.iter().chain(&overrides).chain(&["x_other", "mcp-param-a"]);
        let headers: HeaderMap =
            names.map(|name| (HeaderName::from_static(name), HeaderValue::from_static("/admin"))).collect();
        let sent = |target: &Target| {
            let sent = outgoing(&headers, target, ([192, 0, 2, 7], 1).into());
            let mut names: Vec<_> = sent
                .iter()
                .filter(|(_, value)| *value == "/admin")
                .map(|(name, _)| name.as_str().to_owned())
                .collect();
            names.sort_unstable();
            names
        };
        let remote = Target::remote("https://server.example/mcp", Transport::StreamableHttp).unwrap();
        assert_eq!(sent(&remote), ["mcp-param-a", "x_other"]);
        let own = sent(&Target::own("server", 80).unwrap());
        assert!(own.iter().all(|name| !forged.contains(&name.as_str())), "{own:?}");
    }

    #[test]
    fn the_connection_header_is_read_byte_by_byte() {
        let mut headers = HeaderMap::new();
        headers.insert("connection", HeaderValue::from_bytes(b"close, \xff, x-secret").unwrap());
        headers.insert("x-secret", HeaderValue::from_static("1"));
        strip_hop_by_hop(&mut headers);
        assert!(headers.is_empty(), "{headers:?}");
    }

    #[test]
    fn a_server_sees_the_address_of_the_client() {
        for (peer, expected) in [
            ("192.0.2.7:1", "192.0.2.7"),
            ("0.10.99.100:1", "0.10.99.100"),
            ("255.200.109.90:1", "255.200.109.90"),
            ("[::1]:1", "::1"),
            ("[2001:db8:1111:2222:3333:4444:5555:6666]:1", "2001:db8:1111:2222:3333:4444:5555:6666"),
            ("[::ffff:192.0.2.7]:1", "::ffff:192.0.2.7"),
        ] {
            let target = Target::own("server", 80).unwrap();
            let headers = outgoing(&HeaderMap::new(), &target, peer.parse().unwrap());
            assert_eq!(headers["x-forwarded-for"], expected);
        }
    }
}
