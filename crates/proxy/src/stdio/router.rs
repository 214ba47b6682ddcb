//! Whom a message is for. It does no I/O: lines for the server go to a queue, messages for clients to theirs.

use std::collections::HashMap;

use bytes::Bytes;
use skep_mcp::{Edits, Envelope, Id, Json, Kind, Raw, Rejection, empty_result, stdio::line_of};
use tokio::sync::mpsc;
use tracing::{debug, warn};

use super::{
    handshake::Handshake,
    inflight::{Effect, From, Inflight, Pending, SessionKey},
    member::Members,
    outbox::Reply,
};
use crate::limits;

/// The way to the server.
#[derive(Default)]
pub(super) enum Link {
    /// There is none.
    #[default]
    Down,
    /// The server has been started, and is not ready for clients.
    Greeting(mpsc::Sender<Bytes>),
    /// Clients may speak to it.
    Open(mpsc::Sender<Bytes>),
}

/// A question of the server that a client has not answered yet.
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
    /// A number that was never used: the server's id for a request, or a client's for a question.
    pub(super) fn number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }

    /// Sends a line without waiting: the reader of the server's output must not wait for its input.
    pub(super) fn tell(&self, line: Vec<u8>) {
        let (Link::Open(sender) | Link::Greeting(sender)) = &self.link else { return };
        if sender.try_send(line.into()).is_err() {
            warn!("the server does not read its input: a message for it is lost");
        }
    }

    /// Removes a request, and answers the server's requests that belong to it.
    pub(super) fn finished(&mut self, number: u64) -> Option<Pending> {
        let pending = self.inflight.remove(number)?;
        let open: Vec<_> = self
            .server_requests
            .iter()
            .filter(|(_, asked)| asked.request == number)
            .map(|(asked, _)| *asked)
            .collect();
        for question in open {
            if let Some(asked) = self.server_requests.remove(&question) {
                self.tell(line_of(Rejection::Timeout.body(Id::spelled(&asked.id))));
            }
        }
        Some(pending)
    }

    /// Removes a request whose client is gone, and notifies the server.
    pub(super) fn cancelled(&mut self, number: u64) {
        if self.finished(number).is_some() {
            let params = format!(r#"{{"requestId":{number}}}"#);
            let line = format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{params}}}"#);
            self.tell(line_of(line.into_bytes()));
        }
    }

    /// The server has ended: no request gets a response.
    pub(super) fn disconnected(&mut self) {
        self.link = Link::Down;
        self.server_requests.clear();
        for pending in self.inflight.take() {
            pending.reply.push(Reply::Rejected(Rejection::Unreachable)).ok();
        }
    }

    /// Ends a session, with its streams, its requests and its subscriptions.
    pub(super) fn ended(&mut self, session: &str) {
        let numbers: Vec<_> = self.inflight.of(session).map(|(number, _)| number).collect();
        for number in numbers {
            self.cancelled(number);
        }
        for uri in self.members.remove(session) {
            let number = self.number();
            let params = serde_json::json!({"uri": uri});
            self.tell(request(number, "resources/unsubscribe", &params));
        }
    }

    /// Restores subscriptions and log levels after the server was restarted.
    pub(super) fn resumed(&mut self) {
        let uris: Vec<String> = self.members.subscriptions().map(Into::into).collect();
        let level = self.members.listeners().map(|(_, level)| level).min();
        for uri in uris {
            let number = self.number();
            self.tell(request(number, "resources/subscribe", &serde_json::json!({"uri": uri})));
        }
        if let Some(level) = level {
            let number = self.number();
            self.tell(request(number, "logging/setLevel", &serde_json::json!({"level": level.name()})));
        }
    }

    /// Delivers to a session: by its own stream, or else by that of a request. Without either it is lost, as it would be
    /// for a client that does not listen.
    pub(super) fn deliver(&mut self, session: &str, message: &Bytes) {
        if let Some(member) = self.members.get_mut(session)
            && let Some(stream) = &member.stream
        {
            if stream.push(Reply::Message(message.clone())).is_ok() {
                return;
            }
            member.stream = None;
        }
        if let Some((_, pending)) = self.inflight.of(session).find(|(_, pending)| pending.carries_messages())
        {
            pending.reply.push(Reply::Message(message.clone())).ok();
        }
    }

    /// Puts a message into a session's own stream. One that is too slow for it loses the stream.
    pub(super) fn stream(&mut self, session: &str, message: Bytes) {
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
            From::Nobody => self.members.only().map_or(From::Nobody, From::Session),
            party => party,
        }
    }

    /// What a request has brought about, now that it went well.
    pub(super) fn effect(&mut self, pending: &Pending) {
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

    /// Answers a question of the server here.
    pub(super) fn answer_ping(&self, id: Id<'_>) {
        self.tell(line_of(empty_result(id)));
    }

    /// Notifies the server that no client can answer its request.
    pub(super) fn answer_unknown(&self, id: Id<'_>) {
        debug!("a question of the server has nobody to go to");
        self.tell(line_of(Rejection::Method.body(Some(id))));
    }

    /// Remembers a question, if there is room.
    pub(super) fn ask(&mut self, asked: ServerRequest) -> Option<u64> {
        if self.server_requests.len() >= limits::STDIO_ASKED {
            return None;
        }
        let number = self.number();
        if let Some(pending) = self.inflight.get(asked.request) {
            pending.pulse.ask();
        }
        self.server_requests.insert(number, asked);
        Some(number)
    }
}

/// A request of our own, whose response is ignored.
fn request(number: u64, method: &str, params: &serde_json::Value) -> Vec<u8> {
    let text = format!(r#"{{"jsonrpc":"2.0","id":{number},"method":"{method}","params":{params}}}"#);
    line_of(text.into_bytes())
}

/// The number of ours that this value is, or that it spells: some give ids back as strings.
pub(super) fn number_in(value: Raw<'_>) -> Option<u64> {
    match value.kind() {
        Kind::Number => value.as_str().parse().ok(),
        Kind::Text => serde_json::from_str::<String>(value.as_str()).ok()?.parse().ok(),
        _ => None,
    }
}

/// The message with the client's id in the places where the server has put ours.
pub(super) fn restored(
    message: &Bytes,
    envelope: &Envelope<'_>,
    pending: &Pending,
    place: Option<Raw<'_>>,
) -> Bytes {
    let Some(id) = Id::spelled(&pending.id) else { return message.clone() };
    let mut edits = Edits::of(message);
    if let (Some(own), None) = (envelope.id(), envelope.method()) {
        edits = edits.replace(own.raw(), Json::Raw(id.raw()));
    }
    if let Some(place) = place {
        // A server that turns ids into strings does so with the client's as well.
        let text = place.kind() == Kind::Text && id.raw().kind() == Kind::Number;
        let with = if text { Json::Text(id.raw().as_str()) } else { Json::Raw(id.raw()) };
        edits = edits.replace(place, with);
    }
    edits.bytes().map_or_else(|_| message.clone(), Bytes::from)
}
