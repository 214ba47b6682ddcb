//! Responses that are streams of events.

use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt, stream};
use http::{HeaderMap, HeaderValue, Response, header};
use http_body_util::{BodyDataStream, BodyExt};
use skep_mcp::sse;

use crate::{http::Body, limits};

/// The longest time that is waited for. A timer for ever does not exist.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// Whether a response is a stream of events, by its headers.
pub fn is_stream(headers: &HeaderMap) -> bool {
    let type_ = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    type_.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("text/event-stream")
}

/// The stream, which ends after this time at the latest.
pub fn ended_after(body: Body, time: Duration) -> Body {
    ended_by(body, tokio::time::sleep(time.min(LONGEST)))
}

/// The stream, which ends when this does.
pub(crate) fn ended_by(body: Body, over: impl Future<Output = ()> + Send + 'static) -> Body {
    Body::Made(BodyDataStream::new(body).take_until(Box::pin(over)).boxed())
}

/// A response that is a stream of events.
pub fn response(body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}

/// Maps the events of a stream.
pub trait EventMap: Send + Sync + 'static {
    /// The event as it is to be, or nothing if it stays as it is.
    fn map(&self, frame: &sse::Frame) -> impl Future<Output = Option<Bytes>> + Send;
}

/// The stream with each event as `map` has it, as they come.
pub fn mapped(body: Body, map: impl EventMap) -> Body {
    struct State<M> {
        body: Body,
        decoder: sse::Decoder,
        map: M,
        ended: bool,
    }
    let state = State { body, decoder: sse::Decoder::new(limits::FILTERED_EVENT), map, ended: false };
    let events = stream::unfold(state, |mut state| async move {
        loop {
            match state.decoder.frame() {
                Ok(Some(frame)) => {
                    let seen = state.map.map(&frame).await.unwrap_or_else(|| frame.raw().clone());
                    return Some((Ok(seen), state));
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
