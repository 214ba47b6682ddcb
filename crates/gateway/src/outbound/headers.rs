//! The headers of a request to a server.

use std::net::SocketAddr;

use http::{HeaderMap, HeaderValue, header};

use super::Target;
use crate::headers::FORWARDED;

/// Sets the headers of a request for the server. Hop-by-hop headers of the client have already been stripped.
pub fn outgoing(headers: &mut HeaderMap, target: &Target, peer: SocketAddr) {
    let host = headers.remove(header::HOST);
    headers.remove(header::CONTENT_LENGTH);
    for name in &FORWARDED {
        headers.remove(name);
    }
    // Where a client claims to come from is not trusted; the peer of the connection is.
    let [_, forwarded_for, forwarded_host, forwarded_proto, _] = &FORWARDED;
    if let Ok(value) = HeaderValue::from_str(&peer.ip().to_string()) {
        headers.insert(forwarded_for, value);
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
}
