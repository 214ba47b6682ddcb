//! Heads of requests and answers: what belongs to one connection stays on it.

use std::net::SocketAddr;

use http::{HeaderMap, HeaderName, HeaderValue, header};

use super::Target;

const HOP_BY_HOP: [HeaderName; 8] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];
const FORWARDED: [HeaderName; 5] = [
    header::FORWARDED,
    HeaderName::from_static("x-forwarded-for"),
    HeaderName::from_static("x-forwarded-host"),
    HeaderName::from_static("x-forwarded-proto"),
    HeaderName::from_static("x-real-ip"),
];
const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");
const HTTP2_SETTINGS: HeaderName = HeaderName::from_static("http2-settings");

/// Whether the proxy sets the header itself, so that nobody else may.
pub(crate) fn is_reserved(name: &HeaderName) -> bool {
    HOP_BY_HOP.contains(name)
        || FORWARDED.contains(name)
        || [header::HOST, header::CONTENT_LENGTH, PROXY_CONNECTION, HTTP2_SETTINGS].contains(name)
}

/// The head of a request as the server gets it. What belonged to the client's connection is gone already.
pub(super) fn outgoing(headers: &mut HeaderMap, target: &Target, peer: SocketAddr) {
    let host = headers.remove(header::HOST);
    headers.remove(header::CONTENT_LENGTH);
    for name in &FORWARDED {
        headers.remove(name);
    }
    // What a client says of where it comes from is its own claim; what we see is the end of the connection.
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

/// The head of an answer as the client gets it.
pub(super) fn incoming(headers: &mut HeaderMap) {
    without_connection(headers);
}

/// Without what belongs to one connection, by standard or because the connection's header says so.
pub(crate) fn without_connection(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in HOP_BY_HOP.iter().chain(&named) {
        headers.remove(name);
    }
    headers.remove(PROXY_CONNECTION);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_cannot_say_where_it_comes_from_nor_hide_a_header_from_us() {
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
        without_connection(&mut headers);
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
