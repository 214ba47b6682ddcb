//! Streams of what belongs to no request: that of a session, and since 2026-07-28 those of `subscriptions/listen`.

use std::{collections::VecDeque, pin::pin, sync::Arc};

use bytes::Bytes;
use futures::{StreamExt, stream};
use http::{Response, StatusCode};
use skep_gateway::{
    http::{Body, events, response},
    message::Exchange,
    sessions::Memory,
};
use skep_mcp::{Envelope, Era, List, Message, Rejection, header::MCP_SESSION_ID, sse};
use tokio::{sync::watch, time::timeout};
use tracing::debug;

use super::{
    Front,
    from_backend::{decline, for_client, for_session, readdressed, request_id, retagged},
    subscription::Subscription,
};
use crate::{
    backend::{Backend, Caller, Interest, Link},
    limits,
    session::{ClientSession, Known, Queue},
    views::Views,
};

/// Keeps a connection open that is idle.
const ALIVE: Bytes = Bytes::from_static(b": alive\n\n");

/// A stream of a client.
pub(super) struct Listening {
    views: Arc<Views>,
    /// Where its session is kept, and under which id.
    sessions: Arc<Memory<Known>>,
    id: String,
    session: Arc<ClientSession>,
    /// What the stream is for, if it is not that of the session.
    subscription: Option<Subscription>,
    queue: Queue,
    /// Messages that are to be sent next.
    pending: VecDeque<Bytes>,
    changes: watch::Receiver<u64>,
    closing: watch::Receiver<bool>,
    has_ended: bool,
}

/// What a stream waits for.
enum Happened {
    /// There is a message, or there will be no more.
    Message(Option<Bytes>),
    /// What clients see may have changed.
    Change,
}

impl Front {
    /// Opens the stream of a session.
    pub(super) async fn listen(self: &Arc<Self>, exchange: &Exchange) -> Result<Response<Body>, Rejection> {
        let session = match self.session(exchange).await {
            Ok(session) => session,
            Err(error) => return Ok(error.response()),
        };
        if let Some(resumed) = self.resume_stream(exchange, &session).await {
            return Ok(resumed);
        }
        let Some(queue) = session.outbox.open() else {
            return Ok(response::text(StatusCode::CONFLICT, "the session has a stream\n"));
        };
        let caller = self.caller(exchange);
        for (backend, link) in session.links.open() {
            self.listen_to(session.clone(), backend, link, caller.clone());
        }
        let id = exchange.headers.get(MCP_SESSION_ID).and_then(|id| id.to_str().ok()).unwrap_or_default();
        let listening = self.listening(self.sessions.clone(), id.to_owned(), session, queue, None);
        Ok(listening.response())
    }

    pub(super) fn listening(
        &self,
        sessions: Arc<Memory<Known>>,
        id: String,
        session: Arc<ClientSession>,
        queue: Queue,
        subscription: Option<Subscription>,
    ) -> Listening {
        let pending = subscription.iter().map(Subscription::acknowledgement).collect();
        let (views, changes) = (self.views.clone(), self.views.changes());
        let closing = self.closing.subscribe();
        Listening {
            views,
            sessions,
            id,
            session,
            subscription,
            queue,
            pending,
            changes,
            closing,
            has_ended: false,
        }
    }

    /// Relays what a backend sends by itself, for as long as the client listens.
    pub(super) fn listen_to(
        &self,
        session: Arc<ClientSession>,
        backend: Arc<Backend>,
        link: Arc<Link>,
        caller: Caller,
    ) {
        let Some(closed) = session.outbox.closed() else { return };
        tokio::spawn(async move {
            tokio::select! {
                () = closed => {}
                () = relay(&session, &backend, &link, &caller) => {}
            }
        });
    }
}

/// Relays what a backend sends by itself, for as long as it does.
async fn relay(session: &ClientSession, backend: &Backend, link: &Link, caller: &Caller) {
    loop {
        let mut changed = pin!(session.subscribed.notified());
        let interest = Interest { lists: false, resources: session.subscriptions_at(&backend.name) };
        let events = match backend.listen(link, caller, &interest).await {
            Ok(events) => events,
            Err(error) => return debug!(backend = &*backend.name, %error, "failed to listen to a backend"),
        };
        let is_modern = link.revision.era() == Era::Modern;
        let relayed = async {
            let Some(mut events) = events else { return };
            while let Some(message) = events.next().await {
                pass_on(&message, session, backend, link, caller).await;
            }
        };
        // Since 2026-07-28, a stream is for what was subscribed to when it was opened.
        tokio::select! {
            () = &mut changed, if is_modern => {}
            () = relayed => {
                if !is_modern {
                    return;
                }
                changed.await;
            }
        }
    }
}

async fn pass_on(message: &Bytes, session: &ClientSession, backend: &Backend, link: &Link, caller: &Caller) {
    let Ok(envelope) = Envelope::parse(message) else { return };
    match envelope.message() {
        Message::Notification { .. } if for_client(&envelope, session, backend, session.level()) => {
            let is_same = link.revision.era() == Era::Legacy;
            let message = if is_same { Some(message.clone()) } else { retagged(&envelope, None) };
            message.into_iter().for_each(|message| session.send(message));
        }
        Message::Request { id, .. } if for_session(&envelope, session) => {
            let id = request_id(&backend.name, id.raw().as_str());
            readdressed(&envelope, &id).into_iter().for_each(|message| session.send(message));
        }
        Message::Request { .. } => decline(&envelope, backend, link, caller).await,
        _ => {}
    }
}

impl Listening {
    pub(super) fn response(self) -> Response<Body> {
        let stream = stream::unfold(self, |mut listening| async move {
            match timeout(limits::HEARTBEAT, listening.next()).await {
                Ok(message) => Some((Ok(sse::encoded("message", &message?)), listening)),
                // A session with an open stream counts as used.
                Err(_) if listening.sessions.get(&listening.id).is_some() => Some((Ok(ALIVE), listening)),
                Err(_) => None,
            }
        });
        events::response(Body::Made(stream.boxed()))
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
            let Self { queue, closing, changes, .. } = self;
            let happened = tokio::select! {
                message = queue.next() => Happened::Message(message),
                _ = closing.wait_for(|closing| *closing) => Happened::Message(None),
                Ok(()) = changes.changed() => Happened::Change,
            };
            match happened {
                Happened::Change => self.announce(),
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

    /// Announces the lists that have changed for this client.
    fn announce(&mut self) {
        // A client that has not seen any has nothing to see again.
        let Some(seen) = self.session.last_catalog() else { return };
        let now = self.views.current(&self.session);
        let same = |list: List| seen.table(list).looks_like(now.table(list));
        for (is_same, name) in [
            (same(List::Tools), "tools"),
            (same(List::Prompts), "prompts"),
            (same(List::Resources) && same(List::ResourceTemplates), "resources"),
        ] {
            if is_same {
                continue;
            }
            let message =
                format!(r#"{{"jsonrpc":"2.0","method":"notifications/{name}/list_changed"}}"#).into();
            match &self.subscription {
                None => self.pending.push_back(message),
                Some(subscription) => self.pending.extend(subscription.tagged(&message)),
            }
        }
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
