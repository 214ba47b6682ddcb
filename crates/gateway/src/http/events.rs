//! Responses that are streams of events.

use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt, stream};
use http::{HeaderMap, HeaderValue, Response, header};
use http_body_util::{BodyDataStream, BodyExt};
use skep_mcp::sse;

use crate::{
    body::{Budget, CountedBytes, Exhausted, Share},
    http::Body,
    limits,
};

const NO_MEMORY: &str = "too many bytes wait for clients";
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

/// The stream with each event as `map` has it, as they come. An event takes its share of this memory until it has been sent.
pub fn mapped(body: Body, map: impl EventMap, memory: Budget) -> Body {
    struct State<M> {
        body: Body,
        decoder: sse::Decoder,
        map: M,
        memory: Budget,
        /// That of what waits in the decoder.
        share: Share,
        ended: bool,
        /// Nothing follows, as something is missing.
        is_cut: bool,
    }
    impl<M> State<M> {
        /// What is sent, and no longer waits.
        fn sent(&mut self, seen: Bytes) -> Result<Bytes, Exhausted> {
            self.share = self.memory.share();
            self.share.grow(self.decoder.waiting())?;
            let mut share = self.memory.share();
            share.grow(seen.len())?;
            Ok(CountedBytes::new(seen, share).into_bytes())
        }
    }
    let (decoder, share) = (sse::Decoder::new(limits::FILTERED_EVENT), memory.share());
    let state = State { body, decoder, map, memory, share, ended: false, is_cut: false };
    let events = stream::unfold(state, |mut state| async move {
        if state.is_cut {
            return None;
        }
        loop {
            match state.decoder.frame() {
                Ok(Some(frame)) => {
                    let seen = state.map.map(&frame).await.unwrap_or_else(|| frame.raw().clone());
                    let sent = state.sent(seen);
                    state.is_cut = sent.is_err();
                    return Some((sent.map_err(|_| NO_MEMORY.into()), state));
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
                        if state.share.grow(data.len()).is_err() {
                            state.is_cut = true;
                            return Some((Err(NO_MEMORY.into()), state));
                        }
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

#[cfg(test)]
mod tests {
    use super::*;

    struct Unchanged;

    impl EventMap for Unchanged {
        async fn map(&self, _: &sse::Frame) -> Option<Bytes> {
            None
        }
    }

    /// A stream of these pieces.
    fn of(pieces: Vec<Vec<u8>>, memory: &Budget) -> Body {
        let pieces = stream::iter(pieces.into_iter().map(|piece| Ok(Bytes::from(piece))));
        mapped(Body::Made(pieces.boxed()), Unchanged, memory.clone())
    }

    async fn next(body: &mut Body) -> Option<Result<Bytes, ()>> {
        Some(body.frame().await?.map(|frame| frame.into_data().unwrap()).map_err(drop))
    }

    #[tokio::test]
    async fn an_event_counts_from_its_first_piece_until_it_has_been_sent() {
        let memory = Budget::new(1 << 20);
        let is_free = || memory.take(1 << 20).is_ok();
        let large = || vec![b"data: ".to_vec(), vec![b'x'; 600 << 10], b"\n\n".to_vec()];
        let mut one = of(large(), &memory);
        let event = next(&mut one).await.unwrap().unwrap();
        assert_eq!(event.len(), (600 << 10) + 8);
        assert!(!is_free(), "the client does not read it");
        // So there is none for another one, which ends with an error.
        let mut other = of(large(), &memory);
        assert_eq!(next(&mut other).await, Some(Err(())));
        assert_eq!(next(&mut other).await, None);
        drop((event, other));
        assert!(is_free());
        let small = b": a\n\ndata: b\n\n".repeat(2_000);
        let mut many = of(vec![small.clone(), small.clone()], &memory);
        let mut length = 0;
        while let Some(event) = next(&mut many).await {
            length += event.unwrap().len();
        }
        assert_eq!(length, 2 * small.len());
        assert!(is_free());
    }
}
