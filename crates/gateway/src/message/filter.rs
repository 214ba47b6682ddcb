//! Filtering responses, where a middleware must leave something out.
//!
//! What cannot be parsed is not passed on: it could contain anything.

use std::{borrow::Cow, fmt};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Response, StatusCode, header};
use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, Visitor},
};
use skep_mcp::{Envelope, List, Rejection, sse};

use crate::{
    body::{self, Budget, CountedBytes, ReadError},
    http::{
        Body, content_type,
        events::{self, EventMap},
    },
    identity::Holder,
    limits,
};

/// What a middleware does with each message of a response that holds a list. Others pass as they are.
pub trait MessageFilter: Send + Sync + 'static {
    /// Fetches what the message cannot be filtered without, if there is anything.
    fn prepare<'a>(&'a self, _message: &'a [u8], _envelope: &Envelope<'a>) -> Option<BoxFuture<'a, ()>> {
        None
    }

    /// The message as the caller may see it, or why it may not.
    fn message<'a>(&self, message: &'a [u8], envelope: &Envelope<'a>) -> Result<Cow<'a, [u8]>, Rejection>;
}

/// The filters of one response, in the order in which they apply.
pub type Filters = Vec<Box<dyn MessageFilter>>;

/// The filters of a caller that listens, for lists that it may be sent.
pub struct ListFilters(Filters);

impl ListFilters {
    pub(crate) fn new(filters: Filters) -> Self {
        Self(filters)
    }

    /// Whether the caller sees every list as it is.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The message as the caller may see it.
    pub async fn seen(&self, message: Vec<u8>) -> Result<Vec<u8>, Rejection> {
        Ok(apply(&self.0, &message).await?.unwrap_or(message))
    }
}

/// The response with every message in it filtered.
pub async fn filter(
    response: Response<Body>,
    filters: Filters,
    budget: &Budget,
    holder: impl Fn() -> Option<Holder>,
) -> Result<Response<Body>, Rejection> {
    let (mut parts, body) = response.into_parts();
    let is_answer = parts.status.is_success() && parts.status != StatusCode::ACCEPTED;
    let is_stream = events::is_stream(&parts.headers);
    if !content_type::is_unencoded(&parts.headers) {
        return Err(Rejection::Internal);
    }
    // A client that reads other text than this does sees another message. Of an error, the status is enough.
    if !content_type::is_utf8(&parts.headers) {
        if is_answer || is_stream {
            return Err(Rejection::Internal);
        }
        parts.headers.remove(header::CONTENT_LENGTH);
        parts.headers.remove(header::CONTENT_TYPE);
        return Ok(Response::from_parts(parts, Body::Whole(Bytes::new())));
    }
    if is_stream {
        parts.headers.remove(header::CONTENT_LENGTH);
        let memory = budget.part_of(holder());
        return Ok(Response::from_parts(parts, events::mapped(body, FilteredEvents(filters), memory)));
    }
    let mut share = budget.share();
    let bytes =
        body::read_counted_of(body, limits::FILTERED_BODY, &mut share, holder).await.map_err(|error| {
            match error {
                ReadError::Exhausted => Rejection::Unavailable("memory"),
                ReadError::TooLarge | ReadError::Broken => Rejection::Internal,
            }
        })?;
    // An empty body has nothing to filter.
    if bytes.is_empty() {
        return Ok(Response::from_parts(parts, Body::Whole(bytes)));
    }
    let seen = match apply(&filters, &bytes).await {
        Ok(changed) => changed.map(Bytes::from).unwrap_or(bytes),
        // Errors of HTTP and 202 bodies are no messages, unless they look like a response.
        Err(_) if !is_answer && !may_be_answer(&bytes) => bytes,
        Err(rejection) => return Err(rejection),
    };
    parts.headers.remove(header::CONTENT_LENGTH);
    Ok(Response::from_parts(parts, Body::Whole(CountedBytes::new(seen, share).into_bytes())))
}

/// What some clients skip before JSON.
const BYTE_ORDER_MARKS: [&[u8]; 3] = [b"\xEF\xBB\xBF", b"\xFE\xFF", b"\xFF\xFE"];

/// Whether a client could take this for a response.
fn may_be_answer(bytes: &[u8]) -> bool {
    if BYTE_ORDER_MARKS.iter().any(|mark| bytes.starts_with(mark)) {
        return true;
    }
    match bytes.trim_ascii_start().first() {
        Some(b'{') => {
            let keys: Result<HasResult, _> = serde_json::from_slice(bytes);
            keys.map_or(true, |HasResult(has_result)| has_result)
        }
        first => first == Some(&b'['),
    }
}

/// Whether an object has a result, in whatever case. Keys are compared one by one: a hostile server may send very many.
struct HasResult(bool);

impl<'de> Deserialize<'de> for HasResult {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Keys;

        impl<'de> Visitor<'de> for Keys {
            type Value = HasResult;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<HasResult, A::Error> {
                let mut has_result = false;
                while let Some((IsResult(is_result), IgnoredAny)) = members.next_entry()? {
                    has_result |= is_result;
                }
                Ok(HasResult(has_result))
            }
        }

        deserializer.deserialize_map(Keys)
    }
}

/// Whether a key is that of a result. It is not copied.
struct IsResult(bool);

impl<'de> Deserialize<'de> for IsResult {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Key;

        impl Visitor<'_> for Key {
            type Value = IsResult;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a key")
            }

            fn visit_str<E>(self, key: &str) -> Result<IsResult, E> {
                Ok(IsResult(key.eq_ignore_ascii_case("result")))
            }
        }

        deserializer.deserialize_str(Key)
    }
}

/// The message after all filters, or nothing if it is unchanged.
async fn apply(filters: &Filters, message: &[u8]) -> Result<Option<Vec<u8>>, Rejection> {
    let parsed = Envelope::parse(message).map_err(|_| Rejection::Internal)?;
    // Most responses hold no list: they are scanned once, and not once for each filter.
    if List::lists_in(&parsed).map_err(|_| Rejection::Internal)?.is_empty() {
        return Ok(None);
    }
    let mut changed: Option<Vec<u8>> = None;
    for filter in filters {
        let (current, envelope) = match &changed {
            None => (message, parsed),
            Some(changed) => (&**changed, Envelope::parse(changed).map_err(|_| Rejection::Internal)?),
        };
        if let Some(prepared) = filter.prepare(current, &envelope) {
            prepared.await;
        }
        let next = match filter.message(current, &envelope)? {
            Cow::Borrowed(_) => None,
            Cow::Owned(next) => Some(next),
        };
        if next.is_some() {
            changed = next;
        }
    }
    Ok(changed)
}

/// Each event as the caller may see it. A message that may not be seen is replaced by an error.
struct FilteredEvents(Filters);

impl EventMap for FilteredEvents {
    async fn map(&self, frame: &sse::Frame) -> Option<Bytes> {
        let plain;
        let (event, rewritten) = match frame {
            sse::Frame::Comment(raw) => {
                return sse::has_other_line_ends(raw).then(|| Bytes::from_static(b":\n"));
            }
            sse::Frame::Event(event) if sse::has_other_line_ends(event.raw()) => {
                plain = event.plain();
                (&plain, Some(plain.raw().clone()))
            }
            sse::Frame::Event(event) => (event, None),
        };
        // A 2024 server's first event is the address of its endpoint, and a server may send events without data to be
        // resumed after: neither is a message. Some clients do not look at the kind of an event.
        let is_address = |data: &[u8]| event.kind() == Some(b"endpoint") && !may_be_answer(data);
        let Some(data) = event.data().filter(|data| !data.is_empty() && !is_address(data)) else {
            return rewritten;
        };
        match apply(&self.0, data).await {
            Ok(None) => rewritten,
            Ok(Some(changed)) => Some(event.with_data(&changed)),
            Err(rejection) => Some(event.with_data(&rejection.body(skep_mcp::Id::of_rejected(data)))),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    };

    use super::*;

    /// A filter that rejects all that it sees, and counts it.
    struct Rejects(Arc<AtomicUsize>);

    impl MessageFilter for Rejects {
        fn message<'a>(&self, _: &'a [u8], _: &Envelope<'a>) -> Result<Cow<'a, [u8]>, Rejection> {
            self.0.fetch_add(1, Ordering::Relaxed);
            Err(Rejection::Denied)
        }
    }

    #[tokio::test]
    async fn a_message_passes_through_the_filters_only_if_it_holds_a_list() {
        let seen = Arc::new(AtomicUsize::new(0));
        let filters: Filters = vec![Box::new(Rejects(seen.clone()))];
        let call = br#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"tools"}]}}"#;
        let request = br#"{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{"tools":[]}}"#;
        for message in [&call[..], request] {
            assert!(matches!(apply(&filters, message).await, Ok(None)));
        }
        assert_eq!(seen.load(Ordering::Relaxed), 0);
        let list = br#"{"jsonrpc":"2.0","id":1,"result":{"content":[],"tools":[]}}"#;
        assert!(matches!(apply(&filters, list).await, Err(Rejection::Denied)));
        // Two clients could find different lists in it.
        for message in [&br#"{"jsonrpc":"2.0","id":1,"result":{"tools":[],"tools":[]}}"#[..], b"{"] {
            assert!(matches!(apply(&filters, message).await, Err(Rejection::Internal)));
        }
        assert_eq!(seen.load(Ordering::Relaxed), 1);
    }

    #[tokio::test]
    async fn a_list_is_filtered_whatever_is_said_about_it() {
        let list = r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}"#;
        let seen = async |status: u16, type_: &str, body: String| {
            let filters: Filters = vec![Box::new(Rejects(Arc::default()))];
            let response = Response::builder().status(status).header(header::CONTENT_TYPE, type_);
            let response = response.body(Body::Whole(body.into())).unwrap();
            let filtered = filter(response, filters, &Budget::new(1 << 20), || None).await;
            let Ok(filtered) = filtered else { return String::new() };
            let body = http_body_util::BodyExt::collect(filtered.into_body()).await.unwrap().to_bytes();
            String::from_utf8(body.to_vec()).unwrap()
        };
        for (status, type_, body) in [
            (404, "text/plain", format!("\u{feff}{list}")),
            (202, "application/json", format!("\u{feff}{list}")),
            (200, "text/event-stream", format!("event: endpoint\ndata: {list}\n\n")),
            (200, "text/event-stream", format!("event: endpoint\ndata:  [{list}]\n\n")),
        ] {
            let seen = seen(status, type_, body).await;
            assert!(!seen.contains("tools"), "{status} {type_}: {seen}");
        }
        // Some parsers end a line at each of these.
        for end in ["\u{2028}", "\u{2029}", "\u{85}", "\u{b}", "\u{c}", "\u{1c}", "\u{1d}", "\u{1e}"] {
            let call = format!(
                r#"{{"jsonrpc":"2.0","id":1,"result":{{"content":"a{end}data: {list}{end}{end}"}}}}"#
            );
            for body in [
                format!(": x{end}data: {list}{end}{end}\n\n"),
                format!("id: x{end}data: {list}{end}{end}\n\n"),
                format!(
                    "unknown: x{end}data: {list}{end}{end}\ndata: {{\"jsonrpc\":\"2.0\",\"method\":\"a\"}}\n\n"
                ),
                format!("data: {}\n\n", call.replace(list, "[]")),
            ] {
                let seen = seen(200, "text/event-stream", body).await;
                assert!(!seen.contains(end) && !seen.contains("tools"), "{seen:?}");
            }
        }
        for type_ in [
            "text/event-stream; charset=utf-7",
            "text/event-stream;x=y; CharSet=\"cp037\"",
            "application/json; charset=utf-16",
        ] {
            assert_eq!(seen(200, type_, ": x\n\n".into()).await, "", "{type_}");
        }
        let response =
            Response::builder().status(404).header(header::CONTENT_TYPE, "text/html; charset=latin1");
        let response = response.body(Body::Whole(list.into())).unwrap();
        let filters: Filters = vec![Box::new(Rejects(Arc::default()))];
        let error = filter(response, filters, &Budget::new(1 << 20), || None).await.ok().unwrap();
        assert_eq!(error.status(), StatusCode::NOT_FOUND, "a lost session is known by it");
        assert!(matches!(error.into_body(), Body::Whole(body) if body.is_empty()));
        let alive = ": ping\n\n";
        assert_eq!(seen(200, "text/event-stream; charset=UTF-8", alive.into()).await, alive);
        let address = "event: endpoint\ndata: /messages?session_id=1\n\n";
        assert_eq!(seen(200, "text/event-stream", address.into()).await, address);
        assert_eq!(seen(404, "text/plain", "not found".into()).await, "not found");
    }
}
