//! Looking into answers, where a layer must leave something out.
//!
//! What cannot be read is not passed on: an answer that no layer understands could hold anything.

use std::borrow::Cow;

use bytes::Bytes;
use futures::{StreamExt, future::BoxFuture, stream};
use http::{HeaderMap, Response, header};
use http_body_util::BodyExt;
use skep_mcp::{Envelope, Refusal, sse};

use crate::{
    body::{self, Body, BodyError},
    limits,
};

/// What a layer does with each message of an answer.
pub(crate) trait MessageFilter: Send + Sync + 'static {
    /// What must be found out elsewhere before the message can be looked at, if anything must.
    fn asks<'a>(&'a self, _message: &'a [u8], _envelope: &Envelope<'a>) -> Option<BoxFuture<'a, ()>> {
        None
    }

    /// The message as it may be seen, or why it may not be.
    fn message<'a>(&self, message: &'a [u8], envelope: &Envelope<'a>) -> Result<Cow<'a, [u8]>, Refusal>;
}

/// The filters of one answer, in the order in which they look.
pub(crate) type Filters = Vec<Box<dyn MessageFilter>>;

/// The answer with every message in it filtered.
pub(crate) async fn filtered(response: Response<Body>, filters: Filters) -> Result<Response<Body>, Refusal> {
    let (mut parts, body) = response.into_parts();
    if is_stream(&parts.headers) {
        parts.headers.remove(header::CONTENT_LENGTH);
        return Ok(Response::from_parts(parts, stream_of(body, filters)));
    }
    let bytes = body::read(body, limits::FILTERED_BODY).await.map_err(|_| Refusal::Internal)?;
    // Without a body there is nothing to leave out. Errors of HTTP speak for themselves, and are no messages.
    if bytes.is_empty() || !parts.status.is_success() {
        return Ok(Response::from_parts(parts, Body::Whole(bytes)));
    }
    let seen = apply(&filters, &bytes).await?.map(Bytes::from).unwrap_or(bytes);
    parts.headers.remove(header::CONTENT_LENGTH);
    Ok(Response::from_parts(parts, Body::Whole(seen)))
}

fn is_stream(headers: &HeaderMap) -> bool {
    let type_ = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    type_.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("text/event-stream")
}

/// The message after all filters, or nothing if it is as it was.
async fn apply(filters: &Filters, message: &[u8]) -> Result<Option<Vec<u8>>, Refusal> {
    let mut changed: Option<Vec<u8>> = None;
    for filter in filters {
        let current = changed.as_deref().unwrap_or(message);
        let envelope = Envelope::parse(current).map_err(|_| Refusal::Internal)?;
        if let Some(asking) = filter.asks(current, &envelope) {
            asking.await;
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

/// A stream whose events are looked into one by one, as they come.
fn stream_of(body: Body, filters: Filters) -> Body {
    struct State {
        body: Body,
        decoder: sse::Decoder,
        filters: Filters,
        ended: bool,
    }
    let state = State { body, decoder: sse::Decoder::new(limits::FILTERED_EVENT), filters, ended: false };
    let events = stream::unfold(state, |mut state| async move {
        loop {
            match state.decoder.frame() {
                Ok(Some(frame)) => {
                    let seen = event(&state.filters, frame).await;
                    return Some((seen, state));
                }
                Ok(None) if state.ended => return None,
                Ok(None) => {}
                Err(error) => {
                    state.ended = true;
                    return Some((Err(error.into()), state));
                }
            }
            match state.body.frame().await {
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        state.decoder.feed(&data);
                    }
                }
                Some(Err(error)) => {
                    state.ended = true;
                    return Some((Err(error), state));
                }
                None => state.ended = true,
            }
        }
    });
    Body::Made(events.boxed())
}

/// One event as it may be seen. A message that may not be is answered by an error in its place.
async fn event(filters: &Filters, frame: sse::Frame) -> Result<Bytes, BodyError> {
    let sse::Frame::Event(event) = &frame else { return Ok(frame.raw().clone()) };
    // A 2024 server's first event is the address of its endpoint, and a server may send events without data to be
    // resumed after: neither is a message.
    let Some(data) = event.data().filter(|data| !data.is_empty() && !is_other(event)) else {
        return Ok(frame.raw().clone());
    };
    match apply(filters, data).await {
        Ok(None) => Ok(frame.raw().clone()),
        Ok(Some(changed)) => Ok(event.with_data(&changed)),
        Err(refusal) => Ok(event.with_data(&refusal.body(skep_mcp::Id::glimpsed(data)))),
    }
}

fn is_other(event: &sse::Event) -> bool {
    event.kind() == Some(b"endpoint")
}
