//! Servers of 2024: their first event says where to send messages.

use bytes::Bytes;
use http::{HeaderMap, Method, Response, Uri, header};
use skep_mcp::sse;

use crate::{
    body::Body,
    endpoint::Endpoint,
    events::{self, EventMap},
};

/// The answer with the address in it as the client can reach it through the proxy. A host that the server names is not
/// passed on: the client would go there without us, and take its token along.
pub(super) fn readdressed(
    asked: &HeaderMap,
    method: &Method,
    response: Response<Body>,
    endpoint: &Endpoint,
) -> Response<Body> {
    if method != Method::GET || !events::is_stream(response.headers()) {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    parts.headers.remove(header::CONTENT_LENGTH);
    let readdressed = Readdressed { endpoint: endpoint.clone(), asked: asked.clone() };
    Response::from_parts(parts, events::mapped(body, readdressed))
}

struct Readdressed {
    endpoint: Endpoint,
    asked: HeaderMap,
}

impl EventMap for Readdressed {
    async fn map(&self, frame: &sse::Frame) -> Option<Bytes> {
        rewritten(frame, &self.endpoint, &self.asked)
    }
}

fn rewritten(frame: &sse::Frame, endpoint: &Endpoint, asked: &HeaderMap) -> Option<Bytes> {
    let sse::Frame::Event(event) = frame else { return None };
    let data = event.data().filter(|_| event.kind() == Some(b"endpoint"))?;
    let address: Uri = std::str::from_utf8(data).ok()?.trim().parse().ok()?;
    let path = address.path_and_query()?.as_str();
    // One that is relative to where it came from stays so: the client knows where that is.
    path.starts_with('/').then(|| event.with_data(endpoint.reference(asked, path).as_bytes()))
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
        let made = super::rewritten(&frame, &Endpoint::new(&config), &HeaderMap::new());
        String::from_utf8(made.unwrap_or_else(|| frame.raw().clone()).to_vec()).unwrap()
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
}
