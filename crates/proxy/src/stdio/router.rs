//! Routing of messages. It does no I/O: lines for the server are put into a queue, messages for clients into theirs.

use std::{collections::HashMap, time::Duration};

use bytes::Bytes;
use skep_gateway::body::CountedBytes;
use skep_mcp::{Id, Kind, Raw, Rejection, empty_result, stdio::line_of};
use tracing::{debug, warn};

use super::{
    handshake::Handshake,
    inflight::{Effect, From, Inflight, Pending, SessionKey},
    member::Members,
    outbox::{Event, Reply},
    queue::Queue,
};
use crate::limits;

/// The connection to the server.
#[derive(Default)]
pub(super) enum Link {
    /// There is none.
    #[default]
    Down,
    /// The server has been started, and is not initialized.
    Initializing(Queue),
    /// Clients may use it.
    Open(Queue),
}

/// A request of the server that a client has not responded to yet.
pub(super) struct ServerRequest {
    pub(super) session: SessionKey,
    /// The server's id, as it is spelt.
    pub(super) id: Box<[u8]>,
    /// The request that it belongs to.
    pub(super) request: u64,
}

/// Everything that is known of the server's one stream.
#[derive(Default)]
pub(super) struct Router {
    pub(super) link: Link,
    pub(super) handshake: Option<Handshake>,
    pub(super) members: Members,
    pub(super) inflight: Inflight,
    pub(super) server_requests: HashMap<u64, ServerRequest>,
    last_number: u64,
}

impl Router {
    /// A number that was never used: the id of a request at the server, or of a server's request at a client.
    pub(super) fn number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }

    /// Sends a line without waiting: the reader of the server's output must not wait for its input.
    pub(super) fn send(&self, line: Vec<u8>) {
        let (Link::Open(queue) | Link::Initializing(queue)) = &self.link else { return };
        if queue.push(line).is_err() {
            warn!("dropped a message: the server does not read its input");
        }
    }

    /// Removes a request that the server has responded to, and responds to the server's requests that belong to it.
    pub(super) fn remove_request(&mut self, number: u64) -> Option<Pending> {
        self.inflight.forget(number);
        let pending = self.inflight.remove(number)?;
        self.reject_server_requests(number);
        Some(pending)
    }

    /// The same for a request whose client has left. The server may process it for as long as `time`.
    pub(super) fn abandon(&mut self, number: u64, time: Duration) -> Option<Pending> {
        let pending = self.inflight.abandon(number, time)?;
        self.reject_server_requests(number);
        Some(pending)
    }

    fn reject_server_requests(&mut self, number: u64) {
        let open: Vec<_> = self
            .server_requests
            .iter()
            .filter(|(_, request)| request.request == number)
            .map(|(id, _)| *id)
            .collect();
        for id in open {
            if let Some(request) = self.server_requests.remove(&id) {
                self.send(line_of(Rejection::Timeout.body(Id::spelled(&request.id))));
            }
        }
    }

    /// Removes a request whose client has disconnected, and notifies the server.
    pub(super) fn cancel(&mut self, number: u64) {
        if self.abandon(number, limits::CANCEL_TIME).is_some() {
            self.send_cancellation(number);
        }
    }

    fn send_cancellation(&self, number: u64) {
        let params = format!(r#"{{"requestId":{number}}}"#);
        let line = format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{params}}}"#);
        self.send(line_of(line.into_bytes()));
    }

    /// The server has ended: rejects all requests.
    pub(super) fn disconnect(&mut self) {
        self.link = Link::Down;
        self.server_requests.clear();
        for pending in self.inflight.take() {
            pending.reply.push(Reply::Rejected(Rejection::Unreachable)).ok();
        }
    }

    /// Ends a session, with its streams, its requests and its subscriptions.
    pub(super) fn end_session(&mut self, session: &str) {
        let numbers: Vec<_> = self.inflight.of(session).map(|(number, _)| number).collect();
        // Before those that follow, which are cancelled as well.
        let abandoned = self.inflight.hasten(session, limits::CANCEL_TIME);
        abandoned.into_iter().for_each(|number| self.send_cancellation(number));
        for number in numbers {
            self.cancel(number);
        }
        for uri in self.members.remove(session) {
            let number = self.number();
            let params = serde_json::json!({"uri": uri});
            self.send(request(number, "resources/unsubscribe", &params));
        }
    }

    /// The resources that sessions are subscribed to, to be restored after the server was restarted.
    pub(super) fn subscriptions(&self) -> Vec<Box<str>> {
        self.members.subscriptions().map(Into::into).collect()
    }

    /// The request that subscribes to a resource again, unless the last session has unsubscribed meanwhile.
    pub(super) fn subscription(&mut self, uri: &str) -> Option<Vec<u8>> {
        if !self.members.is_subscribed(uri) {
            return None;
        }
        let number = self.number();
        Some(request(number, "resources/subscribe", &serde_json::json!({"uri": uri})))
    }

    /// The request that restores the lowest level of log messages that a session has set.
    pub(super) fn log_level(&mut self) -> Option<Vec<u8>> {
        let level = self.members.listeners().map(|(_, level)| level).min()?;
        let number = self.number();
        Some(request(number, "logging/setLevel", &serde_json::json!({"level": level.name()})))
    }

    /// Delivers a message to a session: on its own stream, or else on that of a request. Without either it is lost, as it would be
    /// for a client that does not listen.
    pub(super) fn deliver(&mut self, session: &str, message: &Bytes) {
        self.deliver_reply(session, || Reply::Message(message.clone().into()));
    }

    /// Delivers a message to many sessions.
    pub(super) fn broadcast(&mut self, sessions: impl IntoIterator<Item = SessionKey>, message: &Bytes) {
        let event = Event::of(message);
        for session in sessions {
            self.deliver_reply(&session, || Reply::Event(event.clone()));
        }
    }

    fn deliver_reply(&mut self, session: &str, reply: impl Fn() -> Reply) {
        if let Some(member) = self.members.get_mut(session)
            && let Some(stream) = &member.stream
        {
            if stream.push(reply()).is_ok() {
                return;
            }
            member.stream = None;
        }
        let carrier = self.inflight.of(session).find(|(_, pending)| pending.carries_messages());
        if let Some(number) = carrier.map(|(number, _)| number) {
            self.send_before_response(number, reply());
        }
    }

    /// Sends a message on the stream of a request. A client that reads too slowly for it loses the stream: it gets an
    /// error in place of the response, and the server processes the request no longer.
    pub(super) fn send_before_response(&mut self, number: u64, message: Reply) {
        let Some(pending) = self.inflight.get(number).filter(|pending| pending.carries_messages()) else {
            return;
        };
        if pending.reply.push(message).is_err() {
            self.cancel(number);
        }
    }

    /// Puts a message into a session's own stream. One that is too slow for it loses the stream.
    pub(super) fn stream(&mut self, session: &str, message: CountedBytes) {
        if let Some(member) = self.members.get_mut(session)
            && let Some(stream) = &member.stream
            && stream.push(Reply::Message(message)).is_err()
        {
            member.stream = None;
        }
    }

    /// The only recipient that a message without one can be for.
    pub(super) fn only_party(&self) -> From {
        match self.inflight.from() {
            From::None => self.members.only().map_or(From::None, From::Session),
            party => party,
        }
    }

    /// Applies the effect of a request that has succeeded.
    pub(super) fn apply_effect(&mut self, pending: &Pending) {
        let Some(session) = &pending.session else { return };
        match &pending.effect {
            Effect::Nothing => {}
            Effect::Subscribed(uri) => self.members.subscribe(session, uri),
            Effect::Level(level) => {
                if let Some(member) = self.members.get_mut(session) {
                    member.level = Some(*level);
                }
            }
        }
    }

    /// Responds to a ping of the server.
    pub(super) fn answer_ping(&self, id: Id<'_>) {
        self.send(line_of(empty_result(id)));
    }

    /// Responds to the server that no client supports its request.
    pub(super) fn answer_unknown(&self, id: Id<'_>) {
        debug!("no client for a request of the server");
        self.send(line_of(Rejection::Method.body(Some(id))));
    }

    /// Stores a request of the server, if there is room.
    pub(super) fn add_server_request(&mut self, request: ServerRequest) -> Option<u64> {
        if self.server_requests.len() >= limits::STDIO_SERVER_REQUESTS {
            return None;
        }
        let number = self.number();
        if let Some(pending) = self.inflight.get(request.request) {
            pending.pulse.add_server_request();
        }
        self.server_requests.insert(number, request);
        Some(number)
    }
}

/// A request of the bridge itself, whose response is ignored.
fn request(number: u64, method: &str, params: &serde_json::Value) -> Vec<u8> {
    let text = format!(r#"{{"jsonrpc":"2.0","id":{number},"method":"{method}","params":{params}}}"#);
    line_of(text.into_bytes())
}

/// The assigned number that this value is, or that it spells: some servers return ids as strings.
pub(super) fn number_in(value: Raw<'_>) -> Option<u64> {
    match value.kind() {
        Kind::Number => value.as_str().parse().ok(),
        Kind::Text => serde_json::from_str::<String>(value.as_str()).ok()?.parse().ok(),
        _ => None,
    }
}
