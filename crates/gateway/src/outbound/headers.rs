//! The headers of a request to a server.

use std::{
    io::Write,
    net::{IpAddr, SocketAddr},
};

use http::{HeaderMap, HeaderValue, header};

use super::Target;
use crate::headers::FORWARDED;

/// Sets the headers of a request for the server. Hop-by-hop headers of the client have already been stripped.
pub fn outgoing(headers: &mut HeaderMap, target: &Target, peer: SocketAddr) {
    let host = headers.remove(header::HOST);
    headers.remove(header::CONTENT_LENGTH);
    // Most requests have none, and comparing takes less time than looking up each of them.
    if headers.keys().any(|name| FORWARDED.contains(name)) {
        for name in &FORWARDED {
            headers.remove(name);
        }
    }
    // Where a client claims to come from is not trusted; the peer of the connection is.
    let [_, forwarded_for, forwarded_host, forwarded_proto, _] = &FORWARDED;
    if let Some(address) = address(peer.ip()) {
        headers.insert(forwarded_for, address);
    }
    if target.remote {
        headers.insert(forwarded_proto, scheme(target));
    } else {
        headers.insert(forwarded_proto, HeaderValue::from_static("http"));
        if let Some(host) = host {
            headers.insert(forwarded_host, host);
        }
    }
}

/// Allocated once, as each request has it.
fn address(ip: IpAddr) -> Option<HeaderValue> {
    let mut text = [0; "ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255".len()];
    let mut rest = &mut text[..];
    write!(rest, "{ip}").ok()?;
    let unused = rest.len();
    HeaderValue::from_bytes(&text[..text.len() - unused]).ok()
}

fn scheme(target: &Target) -> HeaderValue {
    HeaderValue::from_str(target.scheme.as_str()).unwrap_or(HeaderValue::from_static("http"))
}

#[cfg(test)]
mod tests {
    use http::HeaderName;

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
        outgoing(&mut headers, &Target::own("server", 80).unwrap(), ([192, 0, 2, 7], 1).into());
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
    fn a_server_sees_the_address_of_the_client() {
        for (peer, expected) in [
            ("192.0.2.7:1", "192.0.2.7"),
            ("[::1]:1", "::1"),
            ("[2001:db8:1111:2222:3333:4444:5555:6666]:1", "2001:db8:1111:2222:3333:4444:5555:6666"),
            ("[::ffff:192.0.2.7]:1", "::ffff:192.0.2.7"),
        ] {
            let mut headers = HeaderMap::new();
            outgoing(&mut headers, &Target::own("server", 80).unwrap(), peer.parse().unwrap());
            assert_eq!(headers["x-forwarded-for"], expected);
        }
    }
}
