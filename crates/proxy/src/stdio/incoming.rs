//! Messages of the server: each is routed to the clients that it concerns, and to no other.

use bytes::Bytes;
use serde::Deserialize;
use skep_mcp::{Envelope, Id, Kind, Message, Method, Outcome, Raw, Rejection};
use tracing::debug;

use super::{
    bridge::Bridge,
    inflight::{Carries, From, Pending, SessionKey},
    level::Level,
    outbox::Reply,
    replaced::Replaced,
    router::{Router, ServerRequest, number_in},
};

impl Pending {
    pub(super) fn carries_messages(&self) -> bool {
        self.carries == Carries::Stream
    }

    /// The client's id in the places of the assigned number in a response: its id, and perhaps another.
    fn restored<'a>(&self, id: Id<'a>, place: Option<Raw<'a>>) -> Option<Replaced<'a>> {
        let replaced = Replaced::by_spelled(id.raw(), Id::spelled(&self.id)?.raw());
        Some(match place {
            Some(place) => replaced.and(self.id_in(place)?),
            None => replaced,
        })
    }

    /// The client's id in the place of the assigned number.
    fn id_in<'a>(&self, place: Raw<'a>) -> Option<Replaced<'a>> {
        let id = Id::spelled(&self.id)?.raw();
        // A server that turns ids into strings does so with the client's as well.
        let is_text = place.kind() == Kind::Text && id.kind() == Kind::Number;
        Some(if is_text { Replaced::by_text(place, id.as_str()) } else { Replaced::by_spelled(place, id) })
    }
}

/// Where a message of the server goes.
enum Recipient {
    Session(SessionKey),
    /// The client of this request, before the response.
    Request(u64),
}

/// Routes a line that starts like a message. It may have many megabytes, so it is parsed before the router is locked, and
/// copied after that: otherwise all other requests would wait.
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
            let answer = pending.restored(id, place).and_then(|replaced| replaced.in_message(line));
            let answer = answer.map_or_else(|| line.clone(), Bytes::from);
            // A client that reads too slowly for it gets an error in its place.
            pending.reply.push(Reply::Answer(answer.into())).ok();
        }
        Message::Response { id: None, .. } => debug!("error response of the server without an id"),
        Message::Request { id, .. } => {
            let routed = bridge.router().route_request(&envelope, id);
            deliver(bridge, line, routed);
        }
        Message::Notification { .. } => {
            if envelope.method() == Some(Method::ToolsListChanged) {
                bridge.announce_tools();
            }
            let routed = bridge.router().route_notification(line, &envelope);
            deliver(bridge, line, routed);
        }
    }
}

/// Delivers a message that was routed. A client that has left meanwhile does not get it.
fn deliver(bridge: &Bridge, line: &Bytes, routed: Option<(Replaced<'_>, Recipient)>) {
    let Some((replaced, recipient)) = routed else { return };
    let Some(message) = replaced.in_message(line).map(Bytes::from) else { return };
    let mut router = bridge.router();
    match recipient {
        Recipient::Session(session) => router.deliver(&session, &message),
        // If its client is too slow, the request ends, and what the server requests for it.
        Recipient::Request(number) => router.send_before_response(number, Reply::Message(message.into())),
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
    fn route_request<'a>(
        &mut self,
        envelope: &Envelope<'_>,
        id: Id<'a>,
    ) -> Option<(Replaced<'a>, Recipient)> {
        if envelope.method() == Some(Method::Ping) {
            self.answer_ping(id);
            return None;
        }
        let routed = self.recipient_of_request(envelope, id);
        if routed.is_none() {
            self.answer_unknown(id);
        }
        routed
    }

    fn recipient_of_request<'a>(
        &mut self,
        envelope: &Envelope<'_>,
        id: Id<'a>,
    ) -> Option<(Replaced<'a>, Recipient)> {
        let method = envelope.method().unwrap_or(Method::Other);
        let From::Session(session) = self.inflight.from() else { return None };
        let able = self.members.get(&session).is_some_and(|member| member.abilities.include(method));
        let listens = self.members.get(&session).is_some_and(|member| member.stream.is_some());
        let newest = self.inflight.of(&session).next().map(|(number, _)| number);
        let streams = self.inflight.of(&session).find(|(_, pending)| pending.carries_messages());
        let by_request = streams.map(|(number, _)| number);
        let request = by_request.or(newest)?;
        if !able || (by_request.is_none() && !listens) {
            return None;
        }
        let request =
            ServerRequest { session: session.clone(), id: id.raw().as_str().as_bytes().into(), request };
        let number = self.add_server_request(request)?;
        let recipient = by_request.map_or(Recipient::Session(session), Recipient::Request);
        Some((Replaced::by_number(id.raw(), number), recipient))
    }

    /// Delivers what concerns many, or is unchanged. The rest is returned.
    fn route_notification<'a>(
        &mut self,
        line: &Bytes,
        envelope: &Envelope<'a>,
    ) -> Option<(Replaced<'a>, Recipient)> {
        if let Some(place) = envelope.subscription_id() {
            return self.route_subscribed(place);
        }
        match envelope.method().unwrap_or(Method::Other) {
            Method::Progress => return self.route_progress(envelope),
            Method::Cancelled => return self.route_cancellation(envelope),
            // Changes of lists concern all sessions, and disclose nothing of any.
            Method::ToolsListChanged | Method::PromptsListChanged | Method::ResourcesListChanged => {
                self.broadcast(self.members.keys(), line);
            }
            Method::ResourcesUpdated => {
                let target = envelope.target()?;
                self.broadcast(self.members.subscribers(&target.name()), line);
            }
            Method::LogMessage => self.route_log_message(line, envelope),
            _ => self.route_to_only_session(line),
        }
        None
    }

    /// A notification of a subscription, with the number of its request in this place, goes to the client of that.
    fn route_subscribed<'a>(&self, place: Raw<'a>) -> Option<(Replaced<'a>, Recipient)> {
        let number = number_in(place).unwrap_or_default();
        let Some(pending) = self.inflight.get(number) else {
            debug!("notification of the server for an unknown subscription");
            return None;
        };
        pending.pulse.beat();
        Some((pending.id_in(place)?, Recipient::Request(number)))
    }

    /// Progress goes to the client of the request.
    fn route_progress<'a>(&self, envelope: &Envelope<'a>) -> Option<(Replaced<'a>, Recipient)> {
        let target = envelope.target()?;
        let number = number_in(target.raw).unwrap_or_default();
        let Some(pending) = self.inflight.get(number) else {
            debug!("progress of the server for an unknown request");
            return None;
        };
        pending.pulse.beat();
        let token = Raw::spelled(pending.token.as_deref()?)?;
        Some((Replaced::by_spelled(target.raw, token), Recipient::Request(number)))
    }

    /// The server has cancelled one of its requests.
    fn route_cancellation<'a>(&mut self, envelope: &Envelope<'a>) -> Option<(Replaced<'a>, Recipient)> {
        let target = envelope.target()?;
        let key = Id::spelled(target.raw.as_str().as_bytes()).map(|id| id.key());
        let same =
            |request: &ServerRequest| key.is_some() && Id::spelled(&request.id).map(|id| id.key()) == key;
        let number =
            self.server_requests.iter().find(|(_, request)| same(request)).map(|(number, _)| *number)?;
        let request = self.remove_server_request(number)?;
        Some((Replaced::by_number(target.raw, number), Recipient::Session(request.session)))
    }

    /// Log messages go to the sessions that have set a level, from that level on, while the server processes nothing. What it logs
    /// meanwhile may hold data of a request, so it goes to the only session with one. If none has set a level, they go to the only
    /// session: a message does not name one.
    fn route_log_message(&mut self, line: &Bytes, envelope: &Envelope<'_>) {
        #[derive(Deserialize)]
        struct Params<'a> {
            level: std::borrow::Cow<'a, str>,
        }
        let params = envelope.params().and_then(|raw| serde_json::from_str::<Params<'_>>(raw.as_str()).ok());
        let level = params.and_then(|params| Level::named(&params.level));
        let mut listeners: Vec<(SessionKey, Level)> =
            self.members.listeners().map(|(session, from)| (session.clone(), from)).collect();
        let party = self.inflight.from();
        if listeners.is_empty() || matches!(party, From::Request(_)) {
            return self.route_to_only_session(line);
        }
        listeners.retain(|(session, from)| {
            let is_party = match &party {
                From::None => true,
                From::Session(one) => session == one,
                From::Request(_) | From::Several => false,
            };
            is_party && level.is_none_or(|level| level >= *from)
        });
        let sessions: Vec<_> = listeners.into_iter().map(|(session, _)| session).collect();
        self.broadcast(sessions, line);
    }

    /// A message without a recipient goes to the only session.
    fn route_to_only_session(&mut self, line: &Bytes) {
        match self.only_party() {
            From::Session(session) => self.deliver(&session, line),
            From::Request(number) => self.send_before_response(number, Reply::Message(line.clone().into())),
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
