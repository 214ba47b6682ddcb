//! Servers of 2024: their first event has the address for messages.

use bytes::Bytes;
use http::{HeaderMap, Method, Response, Uri, header};
use skep_gateway::http::{
    Body,
    events::{self, EventMap},
};
use skep_mcp::sse;

use crate::endpoint::Endpoint;

/// The response with the address in it as the client can reach it through the proxy. A host that the server names is not
/// passed on: the client would connect to it directly, and send its token.
pub(super) fn with_proxy_endpoint(
    headers: &HeaderMap,
    method: &Method,
    response: Response<Body>,
    endpoint: &Endpoint,
) -> Response<Body> {
    if method != Method::GET || !events::is_stream(response.headers()) {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    parts.headers.remove(header::CONTENT_LENGTH);
    let with_proxy_endpoint = ProxyEndpoint { endpoint: endpoint.clone(), headers: headers.clone() };
    Response::from_parts(parts, events::mapped(body, with_proxy_endpoint))
}

/// Replaces an invalid address.
const NOWHERE: Bytes = Bytes::from_static(b": an endpoint that is not an address\n\n");

struct ProxyEndpoint {
    endpoint: Endpoint,
    headers: HeaderMap,
}

impl EventMap for ProxyEndpoint {
    async fn map(&self, frame: &sse::Frame) -> Option<Bytes> {
        rewritten(frame, &self.endpoint, &self.headers)
    }
}

fn rewritten(frame: &sse::Frame, endpoint: &Endpoint, headers: &HeaderMap) -> Option<Bytes> {
    let sse::Frame::Event(event) = frame else { return None };
    let data = event.data().filter(|_| event.kind() == Some(b"endpoint"))?;
    let text = std::str::from_utf8(data).unwrap_or_default().trim();
    // A relative one stays so: the client resolves it.
    if is_relative(text) {
        return None;
    }
    let address = text.parse::<Uri>().ok().filter(|_| !text.contains('\\'));
    Some(match address.as_ref().and_then(Uri::path_and_query) {
        Some(path) if path.as_str().starts_with('/') => {
            // Two slashes would start a host again.
            let path = format!("/{}", path.as_str().trim_start_matches('/'));
            event.with_data(endpoint.reference(headers, &path).as_bytes())
        }
        _ => NOWHERE,
    })
}

/// Whether every client reads this as a path relative to the requested one: browsers read `\` as `/`, and ignore what
/// is not visible.
fn is_relative(text: &str) -> bool {
    let first = text.split(['/', '?', '#']).next().unwrap_or_default();
    text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\')
        && !text.starts_with('/')
        && !first.contains(':')
}

#[cfg(test)]
mod tests {
    use skep_config::RunConfig;

    use super::*;

    fn rewritten(prefix: &str, event: &str) -> String {
        let config = RunConfig { endpoint_prefix: prefix.into(), ..RunConfig::default() };
        let mut decoder = sse::Decoder::new(1_000);
        decoder.feed(event.as_bytes());
        let frame = decoder.frame().unwrap().unwrap();
        let rewritten = super::rewritten(&frame, &Endpoint::new(&config), &HeaderMap::new());
        String::from_utf8(rewritten.unwrap_or_else(|| frame.raw().clone()).to_vec()).unwrap()
    }

    #[test]
    fn an_endpoint_is_always_at_the_proxy() {
        for (prefix, event, expected) in [
            ("", "event: endpoint\ndata: /messages?s=1\n\n", "event: endpoint\ndata: /messages?s=1\n\n"),
            ("/a/", "event: endpoint\ndata: /messages?s=1\n\n", "event: endpoint\ndata: /a/messages?s=1\n\n"),
            (
                "",
                "event: endpoint\ndata: http://10.0.0.1:8080/messages?s=1\n\n",
                "event: endpoint\ndata: /messages?s=1\n\n",
            ),
            ("", "event: endpoint\ndata: https://evil.example\n\n", "event: endpoint\ndata: /\n\n"),
            ("/a", "event: message\ndata: /messages\n\n", "event: message\ndata: /messages\n\n"),
        ] {
            assert_eq!(rewritten(prefix, event), expected);
        }
    }

    #[test]
    fn an_endpoint_never_leads_to_another_host_however_it_is_spelled() {
        for (address, expected) in [
            ("//evil.example/m", Some("/evil.example/m")),
            ("http://10.0.0.1//evil.example/m", Some("/evil.example/m")),
            ("messages?s=1", Some("messages?s=1")),
            ("?s=1:2", Some("?s=1:2")),
            ("/\\evil.example/m", None),
            ("\\\\evil.example/m", None),
            ("https:evil.example/m", None),
            ("https:/\\evil.example/m", None),
            ("evil.example:80", None),
            ("javascript:alert(1)", None),
            ("/\t/evil.example/m", None),
            ("\u{1}//evil.example/m", None),
            ("http://evil.example/a b", None),
            ("//evil.example\ndata: /m", None),
        ] {
            let rewritten = rewritten("", &format!("event: endpoint\ndata: {address}\n\n"));
            let expected = expected.map(|address| format!("event: endpoint\ndata: {address}\n\n"));
            assert_eq!(
                rewritten,
                expected.unwrap_or_else(|| ": an endpoint that is not an address\n\n".into()),
                "{address:?}"
            );
        }
    }
}
