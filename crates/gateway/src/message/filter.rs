//! Filtering responses, where a middleware must leave something out.
//!
//! What cannot be parsed is not passed on: it could contain anything.

use std::{borrow::Cow, collections::HashMap};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Response, StatusCode, header};
use serde::de::IgnoredAny;
use skep_mcp::{Envelope, Rejection, sse};

use crate::{
    body::{self, Budget, ReadError},
    http::{
        Body, content_type,
        events::{self, EventMap},
    },
    limits,
};

/// What a middleware does with each message of a response.
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

/// The response with every message in it filtered.
pub async fn filter(
    response: Response<Body>,
    filters: Filters,
    budget: &Budget,
) -> Result<Response<Body>, Rejection> {
    let (mut parts, body) = response.into_parts();
    if !content_type::is_unencoded(&parts.headers) {
        return Err(Rejection::Internal);
    }
    if events::is_stream(&parts.headers) {
        parts.headers.remove(header::CONTENT_LENGTH);
        return Ok(Response::from_parts(parts, events::mapped(body, FilteredEvents(filters))));
    }
    let (bytes, share) =
        body::read_counted(body, limits::FILTERED_BODY, budget).await.map_err(|error| match error {
            ReadError::Exhausted => Rejection::Unavailable("memory"),
            ReadError::TooLarge | ReadError::Broken => Rejection::Internal,
        })?;
    // An empty body has nothing to filter.
    if bytes.is_empty() {
        return Ok(Response::from_parts(parts, Body::Counted(bytes, share)));
    }
    let is_answer = parts.status.is_success() && parts.status != StatusCode::ACCEPTED;
    let seen = match apply(&filters, &bytes).await {
        Ok(changed) => changed.map(Bytes::from).unwrap_or(bytes),
        // Errors of HTTP and 202 bodies are no messages, unless they look like a response.
        Err(_) if !is_answer && !may_be_answer(&bytes) => bytes,
        Err(rejection) => return Err(rejection),
    };
    parts.headers.remove(header::CONTENT_LENGTH);
    Ok(Response::from_parts(parts, Body::Counted(seen, share)))
}

/// Whether a client could take this for a response.
fn may_be_answer(bytes: &[u8]) -> bool {
    match bytes.trim_ascii_start().first() {
        Some(b'{') => {
            let members: Result<HashMap<String, IgnoredAny>, _> = serde_json::from_slice(bytes);
            members.map_or(true, |members| members.keys().any(|key| key.eq_ignore_ascii_case("result")))
        }
        first => first == Some(&b'['),
    }
}

/// The message after all filters, or nothing if it is unchanged.
async fn apply(filters: &Filters, message: &[u8]) -> Result<Option<Vec<u8>>, Rejection> {
    let parsed = Envelope::parse(message).map_err(|_| Rejection::Internal)?;
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
        let sse::Frame::Event(event) = frame else { return None };
        // A 2024 server's first event is the address of its endpoint, and a server may send events without data to be
        // resumed after: neither is a message.
        let data = event.data().filter(|data| !data.is_empty() && event.kind() != Some(b"endpoint"))?;
        match apply(&self.0, data).await {
            Ok(changed) => Some(event.with_data(&changed?)),
            Err(rejection) => Some(event.with_data(&rejection.body(skep_mcp::Id::of_rejected(data)))),
        }
    }
}
