//! The messages that a backend sends for one request, the last of which is its response.

use std::time::Duration;

use bytes::Bytes;
use http::{Response, StatusCode};
use http_body_util::BodyExt;
use skep_gateway::{
    body::{Budget, CountedBytes, ReadError, Share, read_counted},
    http::events,
    outbound::UpstreamBody,
};
use skep_mcp::sse;
use tokio::sync::mpsc;

use super::BackendError;
use crate::limits;

/// How much is read of the body of an error.
const ERROR_BODY: usize = 64 << 10;

/// The messages of one request.
pub(crate) enum Messages {
    /// One message, or none.
    Whole(Option<CountedBytes>),
    /// A stream of events.
    Events(Box<Events>),
    /// Those that the stream of a session has for it.
    Queue(mpsc::Receiver<CountedBytes>),
}

/// A stream of events, of which only messages matter.
pub(crate) struct Events {
    body: UpstreamBody,
    decoder: sse::Decoder,
    budget: Budget,
    /// That of an event that is not complete yet.
    share: Share,
}

impl Messages {
    /// The messages of this response.
    pub(super) async fn of(response: Response<UpstreamBody>, budget: &Budget) -> Result<Self, BackendError> {
        let status = response.status();
        if status == StatusCode::UNAUTHORIZED || status == StatusCode::FORBIDDEN {
            return Err(BackendError::Unauthenticated(status));
        }
        if status.is_success() && events::is_stream(response.headers()) {
            return Ok(Self::Events(Box::new(Events::new(response.into_body(), budget.clone()))));
        }
        let limit = if status.is_success() { limits::MESSAGE } else { ERROR_BODY };
        let body = whole(response.into_body(), limit, budget).await?;
        match body.trim_ascii() {
            [] if status.is_success() => Ok(Self::Whole(None)),
            // Since 2026-07-28, an error of JSON-RPC has a status of HTTP, too.
            [b'{', ..] if status.is_success() || is_rpc_error(&body) => Ok(Self::Whole(Some(body))),
            _ if status.is_success() => Err(BackendError::Malformed),
            _ => Err(BackendError::Status(status)),
        }
    }

    /// The next message, which must arrive within this time.
    pub(crate) async fn next(&mut self, time: Duration) -> Result<Option<CountedBytes>, BackendError> {
        let next = async {
            match self {
                Self::Whole(message) => Ok(message.take()),
                Self::Events(events) => events.next().await,
                Self::Queue(messages) => Ok(messages.recv().await),
            }
        };
        tokio::time::timeout(time, next).await.unwrap_or(Err(BackendError::Timeout(time)))
    }

    /// No more messages are expected: the connection is for other requests, if the response ends here.
    pub(crate) fn finish(&mut self) {
        if let Self::Events(events) = std::mem::replace(self, Self::Whole(None)) {
            events.body.finish();
        }
    }
}

/// What a backend sends by itself.
pub(crate) enum Listening {
    /// On a stream of its own.
    Events(Box<Events>),
    /// On the stream of the session.
    Queue(mpsc::Receiver<CountedBytes>),
}

impl Listening {
    /// The next message, or nothing when there are no more. It may be dropped and called again.
    pub(crate) async fn next(&mut self) -> Option<Bytes> {
        let next = match self {
            Self::Events(events) => events.next().await.ok().flatten(),
            Self::Queue(messages) => messages.recv().await,
        };
        next.map(CountedBytes::into_bytes)
    }
}

impl Events {
    pub(super) fn new(body: UpstreamBody, budget: Budget) -> Self {
        let decoder = sse::Decoder::new(limits::MESSAGE);
        Self { body, decoder, share: budget.share(), budget }
    }

    /// The next message.
    pub(super) async fn next(&mut self) -> Result<Option<CountedBytes>, BackendError> {
        loop {
            let Some(event) = self.event().await? else { return Ok(None) };
            // A server may send events without data, to be resumed after.
            if let Some(data) =
                event.data().filter(|data| !data.is_empty() && event.kind() != Some(b"endpoint"))
            {
                let data = Bytes::copy_from_slice(data);
                drop(event);
                return self.counted(data).map(Some);
            }
        }
    }

    /// A message that was read, in place of the event that it was in.
    fn counted(&mut self, message: Bytes) -> Result<CountedBytes, BackendError> {
        self.share = self.budget.share();
        self.share.grow(self.decoder.waiting()).map_err(|_| BackendError::NoMemory)?;
        let mut share = self.budget.share();
        share.grow(message.len()).map_err(|_| BackendError::NoMemory)?;
        Ok(CountedBytes::new(message, share))
    }

    /// The next event.
    pub(super) async fn event(&mut self) -> Result<Option<sse::Event>, BackendError> {
        loop {
            match self.decoder.frame().map_err(|_| BackendError::TooLarge)? {
                Some(sse::Frame::Event(event)) => return Ok(Some(event)),
                Some(sse::Frame::Comment(_)) => continue,
                None => {}
            }
            match self.body.frame().await {
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        self.share.grow(data.len()).map_err(|_| BackendError::NoMemory)?;
                        self.decoder.feed(&data);
                    }
                }
                Some(Err(_)) => return Err(BackendError::Broken),
                None => return Ok(None),
            }
        }
    }
}

async fn whole(body: UpstreamBody, limit: usize, budget: &Budget) -> Result<CountedBytes, BackendError> {
    match read_counted(body, limit, budget).await {
        Ok((bytes, share)) => Ok(CountedBytes::new(bytes, share)),
        Err(ReadError::TooLarge) => Err(BackendError::TooLarge),
        Err(ReadError::Broken) => Err(BackendError::Broken),
        Err(ReadError::Exhausted) => Err(BackendError::NoMemory),
    }
}

fn is_rpc_error(body: &[u8]) -> bool {
    let outcome = skep_mcp::Envelope::parse(body).map(|envelope| envelope.message());
    matches!(outcome, Ok(skep_mcp::Message::Response { outcome: skep_mcp::Outcome::Error(_), .. }))
}
