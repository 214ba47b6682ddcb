//! The messages that a backend sends for one request, the last of which is its response.

use std::{pin::pin, time::Duration};

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode};
use http_body_util::BodyExt;
use skep_gateway::{
    body::{Budget, CountedBytes, ReadError, Share, read_counted},
    http::events,
    outbound::UpstreamBody,
};
use skep_mcp::sse;
use tokio::{
    sync::watch,
    time::{Instant, sleep, timeout_at},
};

use super::{BackendError, http_sse::Inbox};
use crate::limits;

/// How much is read of the body of an error.
const ERROR_BODY: usize = 64 << 10;

/// A response whose head has arrived.
pub(super) struct Head {
    pub(super) response: Response<UpstreamBody>,
    /// Until when its body may arrive, unless that is a stream.
    pub(super) deadline: Instant,
}

/// The messages of one request.
pub(crate) enum Messages {
    /// One message, or none.
    Whole(Option<CountedBytes>),
    /// A stream of events.
    Events(Box<Events>),
    /// Those that the stream of a session has for it.
    Queue(Inbox),
}

/// A stream of events, of which only messages matter.
pub(crate) struct Events {
    body: UpstreamBody,
    decoder: sse::Decoder,
    budget: Budget,
    /// That of an event that is not complete yet.
    share: Share,
    /// Notified of each piece that arrives: comments keep a stream alive, too.
    pub(super) heard: watch::Sender<()>,
    place: Place,
    /// How often it was continued since a piece arrived.
    pub(super) attempts: usize,
}

/// Where a stream can be continued (MCP 2025-11-25, transports, resumability).
#[derive(Clone, Debug, Default)]
pub(crate) struct Place {
    /// The id of the last event that had one.
    pub(crate) id: Option<HeaderValue>,
    /// How long the backend is to be left alone before.
    pub(crate) pause: Option<Duration>,
}

impl Messages {
    /// The messages of this response, of a backend that may take this long for it.
    pub(super) async fn of(head: Head, budget: &Budget, time: Duration) -> Result<Self, BackendError> {
        let Head { response, deadline } = head;
        let status = response.status();
        if status == StatusCode::UNAUTHORIZED || status == StatusCode::FORBIDDEN {
            return Err(BackendError::Unauthenticated(status));
        }
        if status.is_success() && events::is_stream(response.headers()) {
            return Ok(Self::Events(Box::new(Events::new(response.into_body(), budget.clone()))));
        }
        let limit = if status.is_success() { limits::MESSAGE } else { ERROR_BODY };
        let body = timeout_at(deadline, whole(response.into_body(), limit, budget)).await;
        let body = match body.unwrap_or(Err(BackendError::Timeout(time))) {
            Err(_) if !status.is_success() => return Err(BackendError::Status(status)),
            body => body?,
        };
        match body.trim_ascii() {
            [] if status.is_success() => Ok(Self::Whole(None)),
            // Since 2026-07-28, an error of JSON-RPC has a status of HTTP, too.
            [b'{', ..] if status.is_success() || is_rpc_error(&body) => Ok(Self::Whole(Some(body))),
            _ if status.is_success() => Err(BackendError::Malformed),
            _ => Err(BackendError::Status(status)),
        }
    }

    /// The next message. The backend may send nothing at all for this long. It may be dropped and called again.
    pub(super) async fn next(&mut self, silence: Duration) -> Result<Option<CountedBytes>, BackendError> {
        let mut heard = self.heard();
        let mut next = pin!(async {
            match self {
                Self::Whole(message) => Ok(message.take()),
                Self::Events(events) => events.next().await,
                Self::Queue(messages) => messages.next().await,
            }
        });
        loop {
            tokio::select! {
                biased;
                next = &mut next => return next,
                () = piece(&mut heard) => {}
                () = sleep(silence) => return Err(BackendError::Timeout(silence)),
            }
        }
    }

    fn heard(&self) -> Option<watch::Receiver<()>> {
        match self {
            Self::Whole(_) => None,
            Self::Events(events) => Some(events.heard.subscribe()),
            Self::Queue(messages) => Some(messages.heard.clone()),
        }
    }

    /// No more messages are expected: the connection is for other requests, if the response ends here.
    pub(crate) fn finish(&mut self) {
        match std::mem::replace(self, Self::Whole(None)) {
            Self::Whole(_) => {}
            Self::Events(events) => events.body.finish(),
            Self::Queue(messages) => messages.finish(),
        }
    }
}

/// Completes when a piece of a stream arrives.
async fn piece(heard: &mut Option<watch::Receiver<()>>) {
    if let Some(heard) = heard
        && heard.changed().await.is_ok()
    {
        return;
    }
    std::future::pending().await
}

/// What a backend sends by itself.
pub(crate) enum Listening {
    /// On a stream of its own.
    Events(Box<Events>),
    /// On the stream of the session.
    Queue(Inbox),
}

impl Listening {
    /// The next message, or nothing when there are no more. It may be dropped and called again.
    pub(crate) async fn next(&mut self) -> Option<Bytes> {
        let next = match self {
            Self::Events(events) => events.next().await.ok().flatten(),
            Self::Queue(messages) => messages.next().await.ok().flatten(),
        };
        next.map(CountedBytes::into_bytes)
    }

    /// Where it can be continued.
    pub(crate) fn place(&self) -> Place {
        match self {
            Self::Events(events) => events.place.clone(),
            Self::Queue(_) => Place::default(),
        }
    }
}

impl Events {
    pub(super) fn new(body: UpstreamBody, budget: Budget) -> Self {
        Self {
            body,
            decoder: sse::Decoder::new(limits::MESSAGE),
            share: budget.share(),
            budget,
            heard: watch::Sender::new(()),
            place: Place::default(),
            attempts: 0,
        }
    }

    pub(super) fn place(&self) -> &Place {
        &self.place
    }

    /// Goes on with another body: that which has ended lacks the rest of an event, if it has a part of one.
    pub(super) fn go_on_with(&mut self, body: UpstreamBody) {
        (self.body, self.decoder) = (body, sse::Decoder::new(limits::MESSAGE));
        self.share = self.budget.share();
    }

    /// The next message.
    pub(super) async fn next(&mut self) -> Result<Option<CountedBytes>, BackendError> {
        loop {
            let Some(event) = self.event().await? else { return Ok(None) };
            self.place.see(&event);
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
                        self.attempts = 0;
                        self.heard.send_replace(());
                    }
                }
                Some(Err(_)) => return Err(BackendError::Broken),
                None => return Ok(None),
            }
        }
    }
}

impl Place {
    /// Takes what an event says of it. An id that cannot be sent back is none.
    fn see(&mut self, event: &sse::Event) {
        if let Some(id) = event.id() {
            let is_usable = !id.is_empty() && id.len() <= limits::EVENT_ID;
            self.id = HeaderValue::from_bytes(id).ok().filter(|_| is_usable);
        }
        let pause = event.retry().map(|pause| Duration::from_millis(pause).min(limits::RESUME_LONGEST_PAUSE));
        self.pause = pause.or(self.pause);
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
