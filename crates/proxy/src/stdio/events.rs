//! Streams of events for clients.

use std::sync::Arc;

use bytes::Bytes;
use futures::{StreamExt, stream};
use http::Response;
use skep_gateway::{
    body::CountedBytes,
    http::{Body, events as streams},
    sessions::Memory,
};
use skep_mcp::{Id, sse};
use tokio::{sync::watch, time::timeout};

use super::{
    bridge::Bridge,
    inflight::SessionKey,
    outbox::{Inbox, Reply},
    server::Phase,
    waiting::Waiting,
};
use crate::limits;

const ALIVE: Bytes = Bytes::from_static(b": alive\n\n");

/// Where the events of a stream come from.
pub(super) enum Source {
    /// From a request, up to its response.
    Request(ResponseStream),
    /// From everything that concerns a session.
    Session(SessionStream),
}

/// The stream of the response to a request.
pub(super) struct ResponseStream {
    /// What has been received already.
    pub(super) first: Option<Reply>,
    pub(super) waiting: Waiting,
    pub(super) id: Bytes,
    pub(super) phase: watch::Receiver<Phase>,
}

impl ResponseStream {
    /// The next reply, or nothing when the stream has ended. It may be dropped and called again.
    pub(super) async fn next(&mut self) -> Option<Reply> {
        if let Some(first) = self.first.take() {
            return Some(first);
        }
        if self.waiting.is_endless() {
            tokio::select! {
                reply = self.waiting.next() => reply,
                _ = self.phase.wait_for(|phase| *phase != Phase::Running) => None,
            }
        } else {
            self.waiting.next().await
        }
    }
}

/// The stream of a session.
pub(super) struct SessionStream {
    /// Its first event.
    pub(super) first: Option<Bytes>,
    pub(super) inbox: Inbox,
    pub(super) session: SessionKey,
    pub(super) sessions: Arc<Memory>,
    pub(super) phase: watch::Receiver<Phase>,
    /// Ends the session with the stream, where clients have no other way to end it.
    pub(super) _guard: Option<SessionGuard>,
}

/// A session that ends with its stream.
pub(super) struct SessionGuard {
    pub(super) bridge: Arc<Bridge>,
    pub(super) session: SessionKey,
    pub(super) sessions: Arc<Memory>,
}

impl Drop for SessionGuard {
    fn drop(&mut self) {
        self.sessions.remove(&self.session);
        self.bridge.router().end_session(&self.session);
    }
}

impl Source {
    /// The next event, or nothing when the stream has ended. It may be dropped and called again.
    async fn next(&mut self) -> Option<Bytes> {
        match self {
            Self::Request(stream) => {
                let reply = stream.next().await?;
                Some(event(reply, &stream.id))
            }
            Self::Session(stream) => {
                if let Some(first) = stream.first.take() {
                    return Some(first);
                }
                tokio::select! {
                    reply = stream.inbox.next() => Some(event(reply?, b"")),
                    _ = stream.phase.wait_for(|phase| *phase != Phase::Running) => None,
                }
            }
        }
    }

    /// Whether the stream continues. A session with an open stream counts as used.
    fn is_alive(&self) -> bool {
        match self {
            Self::Request(_) => true,
            Self::Session(stream) => stream.sessions.get(&stream.session).is_some(),
        }
    }
}

/// The events of a source, with comments in between when it is idle: otherwise the connection may be closed on the way.
pub(super) fn response(source: Source) -> Response<Body> {
    let events = stream::unfold(source, |mut source| async move {
        match timeout(limits::KEEP_ALIVE, source.next()).await {
            Ok(event) => Some((Ok(event?), source)),
            Err(_) if source.is_alive() => Some((Ok(ALIVE), source)),
            Err(_) => None,
        }
    });
    streams::response(Body::Made(events.boxed()))
}

/// A stream of one event.
pub(super) fn single(message: &CountedBytes) -> Response<Body> {
    streams::response(Body::Whole(message.remade(sse::encoded("message", message)).into_bytes()))
}

fn event(reply: Reply, id: &[u8]) -> Bytes {
    match reply {
        Reply::Message(message) | Reply::Answer(message) => {
            message.remade(sse::encoded("message", &message)).into_bytes()
        }
        Reply::Event(event) => event.encoded.into_bytes(),
        Reply::Rejected(rejection) => sse::encoded("message", &rejection.body(Id::spelled(id))),
    }
}
