//! Messages of the server: each is routed to the clients that it concerns, and to no other.

use bytes::Bytes;
use serde::Deserialize;
use skep_mcp::{Edits, Envelope, Id, Json, Message, Method, Outcome, Raw, Rejection};
use tracing::debug;

use super::{
    bridge::Bridge,
    inflight::{Carries, From, Pending},
    level::Level,
    outbox::Reply,
    router::{Router, ServerRequest, number_in, restored},
};

impl Pending {
    pub(super) fn carries_messages(&self) -> bool {
        self.carries == Carries::Stream
    }
}

/// Routes a line that starts like a message. It may have many megabytes, so it is parsed before the router is locked, and a
/// response is copied after that: otherwise all other requests would wait.
pub(super) fn route(bridge: &Bridge, line: &Bytes) {
    let envelope = match Envelope::parse_within(line, super::DEPTH) {
        Ok(envelope) => envelope,
        Err(fault) => {
            debug!(%fault, "malformed message of the server");
            return bridge.router().unreadable(line);
        }
    };
    match envelope.message() {
        Message::Response { id: Some(id), outcome } => {
            // Not in the condition below, which would keep the lock.
            let pending = bridge.router().respond(id, outcome);
            let Some(pending) = pending else { return };
            let is_own =
                |place: &Raw<'_>| number_in(*place).is_some_and(|number| number_in(id.raw()) == Some(number));
            let place = envelope.subscription_id().filter(is_own);
            let answer = restored(line, &envelope, &pending, place);
            // A client that reads too slowly for it gets an error in its place.
            pending.reply.push(Reply::Answer(answer)).ok();
        }
        Message::Response { id: None, .. } => debug!("error response of the server without an id"),
        Message::Request { id, .. } => bridge.router().route_request(line, &envelope, id),
        Message::Notification { .. } => {
            if envelope.method() == Some(Method::ToolsListChanged) {
                bridge.announce_tools();
            }
            bridge.router().route_notification(line, &envelope);
        }
    }
}

impl Router {
    /// The request that a response belongs to, which it ends. The rest is the same for all responses, and needs no lock.
    fn respond(&mut self, id: Id<'_>, outcome: Outcome<'_>) -> Option<Pending> {
        let number = match id {
            Id::Number(raw) => number_in(raw),
            Id::Text(_) => None,
        };
        let Some(pending) = number.and_then(|number| self.remove_request(number)) else {
            debug!("response of the server to an unknown request");
            return None;
        };
        if matches!(outcome, Outcome::Result(_)) {
            self.apply_effect(&pending);
        }
        Some(pending)
    }

    /// A client that waits for a response which cannot be parsed gets an error.
    fn unreadable(&mut self, line: &[u8]) {
        // A request of the server has the server's own id.
        let is_request = line.windows(8).any(|word| word == br#""method""#);
        let number = Id::of_rejected(line).filter(|_| !is_request).and_then(|id| number_in(id.raw()));
        if let Some(pending) = number.and_then(|number| self.remove_request(number)) {
            pending.reply.push(Reply::Rejected(Rejection::Internal)).ok();
        }
    }

    /// A request of the server goes to the one session with a request in flight: with several it is ambiguous.
    fn route_request(&mut self, line: &Bytes, envelope: &Envelope<'_>, id: Id<'_>) {
        let method = envelope.method().unwrap_or(Method::Other);
        if method == Method::Ping {
            return self.answer_ping(id);
        }
        let From::Session(session) = self.inflight.from() else { return self.answer_unknown(id) };
        let able = self.members.get(&session).is_some_and(|member| member.abilities.include(method));
        let listens = self.members.get(&session).is_some_and(|member| member.stream.is_some());
        let newest = self.inflight.of(&session).next().map(|(number, _)| number);
        let streams = self.inflight.of(&session).find(|(_, pending)| pending.carries_messages());
        let by_request = streams.map(|(number, _)| number);
        let Some(request) = by_request.or(newest) else { return self.answer_unknown(id) };
        if !able || (by_request.is_none() && !listens) {
            return self.answer_unknown(id);
        }
        let request =
            ServerRequest { session: session.clone(), id: id.raw().as_str().as_bytes().into(), request };
        let Some(number) = self.add_server_request(request) else { return self.answer_unknown(id) };
        let Ok(message) = Edits::of(line).replace(id.raw(), Json::Number(number)).bytes() else { return };
        let message = Bytes::from(message);
        match by_request {
            // If its client is too slow, the request ends, and this one with it.
            Some(request) => self.send_before_response(request, Reply::Message(message)),
            None => self.deliver(&session, &message),
        }
    }

    fn route_notification(&mut self, line: &Bytes, envelope: &Envelope<'_>) {
        if let Some(place) = envelope.subscription_id() {
            let number = number_in(place).unwrap_or_default();
            let Some(pending) = self.inflight.get(number) else {
                return debug!("notification of the server for an unknown subscription");
            };
            pending.pulse.beat();
            let message = restored(line, envelope, pending, Some(place));
            return self.send_before_response(number, Reply::Message(message));
        }
        match envelope.method().unwrap_or(Method::Other) {
            Method::Progress => self.route_progress(line, envelope),
            Method::Cancelled => self.route_cancellation(line, envelope),
            // Changes of lists concern all sessions, and disclose nothing of any.
            Method::ToolsListChanged | Method::PromptsListChanged | Method::ResourcesListChanged => {
                self.broadcast(self.members.keys(), line);
            }
            Method::ResourcesUpdated => {
                let Some(target) = envelope.target() else { return };
                self.broadcast(self.members.subscribers(&target.name()), line);
            }
            Method::LogMessage => self.route_log_message(line, envelope),
            _ => self.route_to_only_session(line),
        }
    }

    /// Progress goes to the client of the request.
    fn route_progress(&mut self, line: &Bytes, envelope: &Envelope<'_>) {
        let Some(target) = envelope.target() else { return };
        let number = number_in(target.raw).unwrap_or_default();
        let Some(pending) = self.inflight.get(number) else {
            return debug!("progress of the server for an unknown request");
        };
        pending.pulse.beat();
        let Some(token) = &pending.token else { return };
        let Some(token) = Raw::spelled(token) else { return };
        if let Ok(message) = Edits::of(line).replace(target.raw, Json::Raw(token)).bytes() {
            self.send_before_response(number, Reply::Message(message.into()));
        }
    }

    /// The server has cancelled one of its requests.
    fn route_cancellation(&mut self, line: &Bytes, envelope: &Envelope<'_>) {
        let Some(target) = envelope.target() else { return };
        let key = Id::spelled(target.raw.as_str().as_bytes()).map(|id| id.key());
        let same =
            |request: &ServerRequest| key.is_some() && Id::spelled(&request.id).map(|id| id.key()) == key;
        let Some(number) =
            self.server_requests.iter().find(|(_, request)| same(request)).map(|(number, _)| *number)
        else {
            return;
        };
        let Some(request) = self.remove_server_request(number) else { return };
        if let Ok(message) = Edits::of(line).replace(target.raw, Json::Number(number)).bytes() {
            self.deliver(&request.session, &message.into());
        }
    }

    /// Log messages go to the sessions that have set a level, from that level on. If none has, they go to the only
    /// session: a message does not name one.
    fn route_log_message(&mut self, line: &Bytes, envelope: &Envelope<'_>) {
        #[derive(Deserialize)]
        struct Params<'a> {
            level: std::borrow::Cow<'a, str>,
        }
        let params = envelope.params().and_then(|raw| serde_json::from_str::<Params<'_>>(raw.as_str()).ok());
        let level = params.and_then(|params| Level::named(&params.level));
        let mut listeners = self.members.listeners().peekable();
        if listeners.peek().is_none() {
            drop(listeners);
            return self.route_to_only_session(line);
        }
        let is_wanted = |from: Level| level.is_none_or(|level| level >= from);
        let sessions: Vec<_> =
            listeners.filter(|(_, from)| is_wanted(*from)).map(|(session, _)| session.clone()).collect();
        self.broadcast(sessions, line);
    }

    /// A message without a recipient goes to the only session.
    fn route_to_only_session(&mut self, line: &Bytes) {
        match self.only_party() {
            From::Session(session) => self.deliver(&session, line),
            From::Request(number) => self.send_before_response(number, Reply::Message(line.clone())),
            From::None | From::Several => {
                debug!("dropped a notification without a recipient: there are several sessions, or none")
            }
        }
    }

    /// Removes a request of the server that has been answered or cancelled.
    pub(super) fn remove_server_request(&mut self, number: u64) -> Option<ServerRequest> {
        let request = self.server_requests.remove(&number)?;
        if let Some(pending) = self.inflight.get(request.request) {
            pending.pulse.remove_server_request();
        }
        Some(request)
    }
}
