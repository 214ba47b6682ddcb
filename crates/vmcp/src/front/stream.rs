//! Streams of what belongs to no request: that of a session, and since 2026-07-28 those of `subscriptions/listen`.

use std::{collections::VecDeque, sync::Arc};

use bytes::Bytes;
use futures::{Stream, StreamExt, future::BoxFuture, stream};
use http::Response;
use skep_gateway::{
    http::{Body, BodyError, events},
    message::Exchange,
    sessions::Memory,
};
use skep_mcp::{Rejection, header::MCP_SESSION_ID, sse};
use tokio::{
    sync::watch,
    time::{Instant, sleep_until, timeout},
};

use super::{AbortOnDrop, Front, announce::Listener, subscription::Subscription};
use crate::{
    limits,
    session::{Known, Queue},
};

/// Keeps a connection open that is idle.
const ALIVE: Bytes = Bytes::from_static(b": alive\n\n");

/// The stream of a response that may be idle for long.
pub(super) fn kept_alive(
    events: impl Stream<Item = Result<Bytes, BodyError>> + Send + 'static,
) -> Response<Body> {
    let events = stream::unfold(events.boxed(), |mut events| async move {
        match timeout(limits::HEARTBEAT, events.next()).await {
            Ok(event) => Some((event?, events)),
            Err(_) => Some((Ok(ALIVE), events)),
        }
    });
    events::response(Body::Made(events.boxed()))
}

/// A stream of a client.
pub(super) struct Listening {
    front: Arc<Front>,
    /// Where its session is kept, and under which id.
    sessions: Arc<Memory<Known>>,
    id: String,
    listener: Arc<Listener>,
    /// What the stream is for, if it is not that of the session.
    subscription: Option<Subscription>,
    queue: Queue,
    /// Messages that are to be sent next.
    pending: VecDeque<Bytes>,
    changes: watch::Receiver<u64>,
    /// When the session was last used.
    used: Instant,
    /// Before when nothing more is announced.
    announced: Instant,
    /// The lists that have changed for this client, while that is computed.
    announcing: Option<Announcing>,
    closing: watch::Receiver<bool>,
    has_ended: bool,
    /// What backends send by themselves.
    _relays: AbortOnDrop,
}

type Announcing = BoxFuture<'static, Vec<Bytes>>;

/// What a stream waits for.
enum Happened {
    /// There is a message, or there will be no more.
    Message(Option<Bytes>),
    /// What this client sees may have changed.
    Change,
    /// It is known what has.
    Announced(Vec<Bytes>),
}

impl Front {
    /// Opens the stream of a session, in place of one that it has: its connection may be dead without a sign.
    pub(super) async fn listen(self: &Arc<Self>, exchange: &Exchange) -> Result<Response<Body>, Rejection> {
        let session = match self.session(exchange).await {
            Ok(session) => session,
            Err(error) => return Ok(error.response()),
        };
        if let Some(resumed) = self.resume_stream(exchange, &session).await {
            return Ok(resumed);
        }
        let queue = session.outbox.open();
        let listener =
            Listener { session, caller: self.caller(exchange), filters: self.chain.list_filters(exchange) };
        let id = exchange.headers.get(MCP_SESSION_ID).and_then(|id| id.to_str().ok()).unwrap_or_default();
        let listening = self.listening(self.sessions.clone(), id.to_owned(), listener, queue, None);
        Ok(listening.response())
    }

    pub(super) fn listening(
        self: &Arc<Self>,
        sessions: Arc<Memory<Known>>,
        id: String,
        listener: Listener,
        queue: Queue,
        subscription: Option<Subscription>,
    ) -> Listening {
        let listener = Arc::new(listener);
        let pending = subscription.iter().map(Subscription::acknowledgement).collect();
        let mut listening = Listening {
            front: self.clone(),
            sessions,
            id,
            _relays: self.relay_all(&listener, queue.ended()),
            listener,
            subscription,
            queue,
            pending,
            changes: self.views.changes(),
            used: Instant::now(),
            announced: Instant::now(),
            announcing: None,
            closing: self.closing.subscribe(),
            has_ended: false,
        };
        // Lists may have changed since the client was sent them.
        listening.announce();
        listening
    }
}

impl Listening {
    pub(super) fn response(self) -> Response<Body> {
        let stream = stream::unfold(self, |mut listening| async move {
            let message = timeout(limits::HEARTBEAT, listening.next()).await;
            if !listening.use_session().await {
                return None;
            }
            match message {
                Ok(message) => Some((Ok(sse::encoded("message", &message?)), listening)),
                Err(_) => Some((Ok(ALIVE), listening)),
            }
        });
        events::response(Body::Made(stream.boxed()))
    }

    /// A session with an open stream counts as used, here and for other replicas. Returns whether there is still one.
    async fn use_session(&mut self) -> bool {
        if self.used.elapsed() < limits::HEARTBEAT {
            return true;
        }
        self.used = Instant::now();
        if self.sessions.get(&self.id).is_none() {
            return false;
        }
        let (Some(records), Some(id)) = (&self.front.records, self.listener.session.links.shared()) else {
            return true;
        };
        // While Redis is unavailable, it goes on.
        let is_known = !matches!(records.get(id).await, Ok(None));
        if !is_known {
            self.sessions.remove(id);
        }
        is_known
    }

    /// The next message, or nothing when the stream ends. It may be dropped and called again.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(message) = self.pending.pop_front() {
                return Some(message);
            }
            if self.has_ended {
                return None;
            }
            let Self { queue, closing, changes, announcing, listener, .. } = self;
            let is_idle = announcing.is_none();
            let happened = tokio::select! {
                message = queue.next() => Happened::Message(message),
                _ = closing.wait_for(|closing| *closing) => Happened::Message(None),
                messages = announced(announcing) => Happened::Announced(messages),
                Ok(()) = changes.changed(), if is_idle => Happened::Change,
                () = listener.session.lists_changed.notified(), if is_idle => Happened::Change,
            };
            match happened {
                Happened::Change => self.announce(),
                Happened::Announced(messages) => {
                    self.announcing = None;
                    // Another stream may take over from here.
                    messages.into_iter().for_each(|message| self.listener.session.send(message));
                }
                Happened::Message(Some(message)) => self.put(message),
                Happened::Message(None) => {
                    self.has_ended = true;
                    self.pending.extend(self.subscription.as_ref().map(Subscription::result));
                }
            }
        }
    }

    /// Sends a message, if the stream is for it.
    fn put(&mut self, message: Bytes) {
        match &self.subscription {
            None => self.pending.push_back(message),
            Some(subscription) => self.pending.extend(subscription.tagged(&message)),
        }
    }

    /// Announces the lists that have changed for this client. Messages do not wait for that, and what changes again soon is announced
    /// together.
    fn announce(&mut self) {
        let (front, listener) = (self.front.clone(), self.listener.clone());
        let start = self.announced.max(Instant::now());
        self.announced = start + limits::CHANGES_PACE;
        self.announcing = Some(Box::pin(async move {
            sleep_until(start).await;
            front.announcements(&listener).await
        }));
    }
}

/// What is announced next. It may be dropped and called again.
async fn announced(announcing: &mut Option<Announcing>) -> Vec<Bytes> {
    match announcing {
        Some(announcing) => announcing.await,
        None => std::future::pending().await,
    }
}

/// The session of a subscription ends with its stream.
impl Drop for Listening {
    fn drop(&mut self) {
        if self.subscription.is_some() {
            self.sessions.remove(&self.id);
        }
    }
}
