//! Servers of 2024: their first event has the address for messages.

use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use http::{HeaderMap, Method, Response, Uri, header};
use skep_gateway::{
    http::{
        Body,
        events::{self, EventMap},
    },
    message::Exchange,
};
use skep_mcp::sse;

use super::announced::{Announced, Announcement};
use crate::public_url::PublicUrl;

/// The response with the address in it as the client can reach it through the proxy. A host that the server names is not
/// passed on: the client would connect to it directly, and send its token.
pub(super) fn with_proxy_endpoint(
    exchange: &Exchange,
    response: Response<Body>,
    endpoint: &PublicUrl,
    announced: &Announced,
) -> Response<Body> {
    if exchange.method != Method::GET || !events::is_stream(response.headers()) {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    parts.headers.remove(header::CONTENT_LENGTH);
    let with_proxy_endpoint = ProxyEndpoint {
        endpoint: endpoint.clone(),
        headers: exchange.headers.clone(),
        requested: exchange.path.path().to_owned(),
        announced: announced.clone(),
        announcement: Mutex::default(),
    };
    Response::from_parts(parts, events::mapped(body, with_proxy_endpoint, exchange.memory()))
}

/// Replaces an invalid address.
const NOWHERE: Bytes = Bytes::from_static(b": an endpoint that is not an address\n\n");

struct ProxyEndpoint {
    endpoint: PublicUrl,
    headers: HeaderMap,
    /// The path of the stream, which relative addresses are relative to.
    requested: String,
    announced: Announced,
    /// The last address of this stream.
    announcement: Mutex<Option<Announcement>>,
}

impl EventMap for ProxyEndpoint {
    async fn map(&self, frame: &sse::Frame) -> Option<Bytes> {
        let sse::Frame::Event(event) = frame else { return None };
        let data = event.data().filter(|_| event.kind() == Some(b"endpoint"))?;
        let address = Address::parse(std::str::from_utf8(data).unwrap_or_default().trim());
        if let Some(path) = address.path_at(&self.requested) {
            let announcement = self.announced.add(&path);
            *self.announcement.lock().unwrap_or_else(PoisonError::into_inner) = announcement;
        }
        match address {
            // The client resolves it.
            Address::Relative(_) => None,
            Address::Absolute(path) => {
                Some(event.with_data(self.endpoint.reference(&self.headers, &path).as_bytes()))
            }
            Address::Invalid => Some(NOWHERE),
        }
    }
}

/// The address that a server announces, without its host.
#[derive(Debug, PartialEq, Eq)]
enum Address {
    Relative(String),
    Absolute(String),
    Invalid,
}

impl Address {
    fn parse(text: &str) -> Self {
        if is_relative(text) {
            return Self::Relative(text.to_owned());
        }
        let address = text.parse::<Uri>().ok().filter(|_| !text.contains('\\'));
        match address.as_ref().and_then(Uri::path_and_query) {
            // Two slashes would start a host again.
            Some(path) if path.as_str().starts_with('/') => {
                Self::Absolute(format!("/{}", path.as_str().trim_start_matches('/')))
            }
            _ => Self::Invalid,
        }
    }

    /// The path that clients send messages to, without its query, if they requested the stream at `base`.
    fn path_at(&self, base: &str) -> Option<String> {
        let without_query = |text: &str| text.split(['?', '#']).next().unwrap_or_default().to_owned();
        match self {
            Self::Absolute(path) => Some(without_query(path)),
            Self::Relative(reference) => match without_query(reference) {
                path if path.is_empty() => Some(base.to_owned()),
                // Only an address without steps is the same for all clients.
                path if path.split('/').any(|step| matches!(step, "." | "..")) => None,
                path => Some(format!("{}/{path}", base.rsplit_once('/').map_or("", |(folder, _)| folder))),
            },
            Self::Invalid => None,
        }
    }
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
    use futures::FutureExt;
    use skep_config::RunConfig;

    use super::*;

    fn rewritten(prefix: &str, event: &str) -> String {
        let config = RunConfig { endpoint_prefix: prefix.into(), ..RunConfig::default() };
        let mut decoder = sse::Decoder::new(1_000);
        decoder.feed(event.as_bytes());
        let frame = decoder.frame().unwrap().unwrap();
        let map = ProxyEndpoint {
            endpoint: PublicUrl::new(&config),
            headers: HeaderMap::new(),
            requested: "/sse".into(),
            announced: Announced::default(),
            announcement: Mutex::default(),
        };
        let rewritten = map.map(&frame).now_or_never().unwrap();
        String::from_utf8(rewritten.unwrap_or_else(|| frame.raw().clone()).to_vec()).unwrap()
    }

    #[test]
    fn the_path_for_messages_is_the_one_that_clients_resolve() {
        for (address, path) in [
            ("/v1/messages?s=1", Some("/v1/messages")),
            ("https://a.example/messages", Some("/messages")),
            ("messages?s=1", Some("/v1/messages")),
            ("?s=1", Some("/v1/sse")),
            ("../api", None),
            ("a/./b", None),
            ("https:evil", None),
        ] {
            assert_eq!(Address::parse(address).path_at("/v1/sse").as_deref(), path, "{address}");
        }
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
