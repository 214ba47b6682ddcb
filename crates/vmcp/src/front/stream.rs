//! The stream of a session, for what belongs to no request.

use std::sync::Arc;

use bytes::Bytes;
use futures::{StreamExt, stream};
use http::{Response, StatusCode};
use skep_gateway::{
    http::{Body, events, response},
    message::Exchange,
};
use skep_mcp::{Envelope, Era, List, Message, Rejection, header::MCP_SESSION_ID, sse};
use tokio::{sync::watch, time::timeout};
use tracing::debug;

use super::{
    VirtualServer,
    relay::{decline, for_client, for_session, readdressed, request_id},
};
use crate::{
    backend::{Backend, Caller, Link},
    limits,
    session::{ClientSession, Queue},
};

/// Keeps a connection open that is idle.
const ALIVE: Bytes = Bytes::from_static(b": alive\n\n");

/// The stream of a session.
struct Listening {
    session: Arc<ClientSession>,
    queue: Queue,
    /// Messages that are to be sent next.
    pending: Vec<Bytes>,
    changes: watch::Receiver<u64>,
    closing: watch::Receiver<bool>,
}

impl VirtualServer {
    /// Opens the stream of a session.
    pub(super) async fn listen(&self, exchange: &Exchange) -> Result<Response<Body>, Rejection> {
        let session = match self.session(exchange).await {
            Ok(session) => session,
            Err(error) => return Ok(error.response()),
        };
        let Some(queue) = session.outbox.open() else {
            return Ok(response::text(StatusCode::CONFLICT, "the session has a stream\n"));
        };
        let caller = self.caller(exchange);
        for (backend, link) in session.links.open() {
            self.listen_to(session.clone(), backend, link, caller.clone());
        }
        let listening = Listening {
            session,
            queue,
            pending: Vec::new(),
            changes: self.views.changes(),
            closing: self.closing.subscribe(),
        };
        let (views, sessions) = (self.views.clone(), self.sessions.clone());
        let id = exchange
            .headers
            .get(MCP_SESSION_ID)
            .and_then(|id| id.to_str().ok())
            .unwrap_or_default()
            .to_owned();
        let stream = stream::unfold(listening, move |mut listening| {
            let (views, sessions, id) = (views.clone(), sessions.clone(), id.clone());
            async move {
                match timeout(limits::HEARTBEAT, listening.next(&views)).await {
                    Ok(message) => Some((Ok(sse::encoded("message", &message?)), listening)),
                    // A session with an open stream counts as used.
                    Err(_) if sessions.get(&id).is_some() => Some((Ok(ALIVE), listening)),
                    Err(_) => None,
                }
            }
        });
        Ok(events::response(Body::Made(stream.boxed())))
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

async fn relay(session: &ClientSession, backend: &Backend, link: &Link, caller: &Caller) {
    let mut events = match backend.listen(link, caller).await {
        Ok(Some(events)) => events,
        Ok(None) => return,
        Err(error) => return debug!(backend = &*backend.name, %error, "failed to listen to a backend"),
    };
    while let Some(message) = events.next().await {
        let Ok(envelope) = Envelope::parse(&message) else { continue };
        match envelope.message() {
            Message::Notification { .. } if for_client(&envelope, session, backend) => {
                session.send(message.clone())
            }
            Message::Request { id, .. } if for_session(&envelope, session, Era::Legacy) => {
                let id = request_id(&backend.name, id.raw().as_str());
                if let Some(message) = readdressed(&envelope, &id) {
                    session.send(message);
                }
            }
            Message::Request { .. } => decline(&envelope, backend, link, caller).await,
            _ => {}
        }
    }
}

impl Listening {
    /// The next message, or nothing when the stream ends.
    async fn next(&mut self, views: &crate::views::Views) -> Option<Bytes> {
        loop {
            if let Some(message) = self.pending.pop() {
                return Some(message);
            }
            let Self { queue, closing, changes, .. } = self;
            tokio::select! {
                message = queue.next() => return message,
                _ = closing.wait_for(|closing| *closing) => return None,
                Ok(()) = changes.changed() => {}
            }
            self.announce(views);
        }
    }

    /// Announces the lists that have changed for this client.
    fn announce(&mut self, views: &crate::views::Views) {
        // A client that has not seen any has nothing to see again.
        let Some(seen) = self.session.last_catalog() else { return };
        let now = views.current(&self.session);
        let same = |list: List| seen.table(list).looks_like(now.table(list));
        for (is_same, name) in [
            (same(List::Tools), "tools"),
            (same(List::Prompts), "prompts"),
            (same(List::Resources) && same(List::ResourceTemplates), "resources"),
        ] {
            if !is_same {
                let message = format!(r#"{{"jsonrpc":"2.0","method":"notifications/{name}/list_changed"}}"#);
                self.pending.push(message.into());
            }
        }
    }
}
