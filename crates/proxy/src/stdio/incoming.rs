//! Messages of the server: each goes to the clients that it concerns, and to no other.

use bytes::Bytes;
use serde::Deserialize;
use skep_mcp::{Edits, Envelope, Id, Json, Message, Method, Outcome, Raw, Rejection};
use tracing::debug;

use super::{
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

impl Router {
    /// Takes a line that starts like a message.
    pub(super) fn incoming(&mut self, line: &Bytes) {
        let envelope = match Envelope::parse_within(line, super::DEPTH) {
            Ok(envelope) => envelope,
            Err(fault) => {
                debug!(%fault, "the server's message cannot be read");
                return self.unreadable(line);
            }
        };
        match envelope.message() {
            Message::Response { id: Some(id), outcome } => self.answered(line, &envelope, id, outcome),
            Message::Response { id: None, .. } => {
                debug!("the server complains of a message, and not of which")
            }
            Message::Request { id, .. } => self.asks(line, &envelope, id),
            Message::Notification { .. } => self.notifies(line, &envelope),
        }
    }

    /// A client that waits for a response which cannot be parsed gets an error.
    fn unreadable(&mut self, line: &[u8]) {
        // A question of the server has an id of its own.
        let asks = line.windows(8).any(|word| word == br#""method""#);
        let number = Id::glimpsed(line).filter(|_| !asks).and_then(|id| number_in(id.raw()));
        if let Some(pending) = number.and_then(|number| self.finished(number)) {
            pending.reply.push(Reply::Rejected(Rejection::Internal)).ok();
        }
    }

    /// A response goes to the client of its request, once.
    fn answered(&mut self, line: &Bytes, envelope: &Envelope<'_>, id: Id<'_>, outcome: Outcome<'_>) {
        let number = match id {
            Id::Number(raw) => number_in(raw),
            Id::Text(_) => None,
        };
        let Some(pending) = number.and_then(|number| self.finished(number)) else {
            debug!("the server answers what nobody waits for");
            return;
        };
        if matches!(outcome, Outcome::Result(_)) {
            self.effect(&pending);
        }
        let place = envelope.subscription_id().filter(|place| number_in(*place) == number);
        let answer = restored(line, envelope, &pending, place);
        // A client that is gone or too slow has lost it.
        pending.reply.push(Reply::Answer(answer)).ok();
    }

    /// A request of the server goes to the one session with a request in flight: with several it is ambiguous.
    fn asks(&mut self, line: &Bytes, envelope: &Envelope<'_>, id: Id<'_>) {
        let method = envelope.method().unwrap_or(Method::Other);
        if method == Method::Ping {
            return self.answer_ping(id);
        }
        let From::Session(session) = self.inflight.from() else { return self.answer_unknown(id) };
        let able = self.members.get(&session).is_some_and(|member| member.abilities.include(method));
        let listens = self.members.get(&session).is_some_and(|member| member.stream.is_some());
        let newest = self.inflight.of(&session).next().map(|(number, _)| number);
        let streams = self.inflight.of(&session).find(|(_, pending)| pending.carries_messages());
        let by_request = streams.map(|(number, pending)| (number, pending.reply.clone()));
        let Some(request) = by_request.as_ref().map(|(number, _)| *number).or(newest) else {
            return self.answer_unknown(id);
        };
        if !able || (by_request.is_none() && !listens) {
            return self.answer_unknown(id);
        }
        let asked =
            ServerRequest { session: session.clone(), id: id.raw().as_str().as_bytes().into(), request };
        let Some(number) = self.ask(asked) else { return self.answer_unknown(id) };
        let Ok(question) = Edits::of(line).replace(id.raw(), Json::Number(number)).bytes() else { return };
        let question = Bytes::from(question);
        let Some((_, reply)) = by_request else { return self.deliver(&session, &question) };
        if reply.push(Reply::Message(question)).is_err() {
            self.told(number);
            self.answer_unknown(id);
        }
    }

    fn notifies(&mut self, line: &Bytes, envelope: &Envelope<'_>) {
        if let Some(place) = envelope.subscription_id() {
            let pending = number_in(place).and_then(|number| self.inflight.get(number));
            let Some(pending) = pending else { return debug!("the server tells a subscriber that is gone") };
            pending.pulse.beat();
            pending.reply.push(Reply::Message(restored(line, envelope, pending, Some(place)))).ok();
            return;
        }
        match envelope.method().unwrap_or(Method::Other) {
            Method::Progress => self.progresses(line, envelope),
            Method::Cancelled => self.withdraws(line, envelope),
            // Changes of lists concern all sessions, and disclose nothing of any.
            Method::ToolsListChanged | Method::PromptsListChanged | Method::ResourcesListChanged => {
                for session in self.members.keys() {
                    self.deliver(&session, line);
                }
            }
            Method::ResourcesUpdated => {
                let Some(target) = envelope.target() else { return };
                for session in self.members.subscribers(&target.name()) {
                    self.deliver(&session, line);
                }
            }
            Method::LogMessage => self.logs(line, envelope),
            _ => self.tells_somebody(line),
        }
    }

    /// Progress goes to the client of the request.
    fn progresses(&self, line: &Bytes, envelope: &Envelope<'_>) {
        let Some(target) = envelope.target() else { return };
        let Some(pending) = number_in(target.raw).and_then(|number| self.inflight.get(number)) else {
            return debug!("the server reports progress of nothing that is on its way");
        };
        pending.pulse.beat();
        let Some(token) = &pending.token else { return };
        let Some(token) = Raw::spelled(token) else { return };
        if let Ok(message) = Edits::of(line).replace(target.raw, Json::Raw(token)).bytes() {
            pending.reply.push(Reply::Message(message.into())).ok();
        }
    }

    /// The server has cancelled a request of its own.
    fn withdraws(&mut self, line: &Bytes, envelope: &Envelope<'_>) {
        let Some(target) = envelope.target() else { return };
        let key = Id::spelled(target.raw.as_str().as_bytes()).map(|id| id.key());
        let same = |asked: &ServerRequest| key.is_some() && Id::spelled(&asked.id).map(|id| id.key()) == key;
        let Some(number) =
            self.server_requests.iter().find(|(_, asked)| same(asked)).map(|(number, _)| *number)
        else {
            return;
        };
        let Some(asked) = self.told(number) else { return };
        if let Ok(message) = Edits::of(line).replace(target.raw, Json::Number(number)).bytes() {
            self.deliver(&asked.session, &message.into());
        }
    }

    /// Log messages go to the sessions that have set a level, from that level on. If none has, they go to the only
    /// session: a message does not name one.
    fn logs(&mut self, line: &Bytes, envelope: &Envelope<'_>) {
        #[derive(Deserialize)]
        struct Params<'a> {
            level: std::borrow::Cow<'a, str>,
        }
        let params = envelope.params().and_then(|raw| serde_json::from_str::<Params<'_>>(raw.as_str()).ok());
        let level = params.and_then(|params| Level::named(&params.level));
        let mut listeners = self.members.listeners().peekable();
        if listeners.peek().is_none() {
            drop(listeners);
            return self.tells_somebody(line);
        }
        let wanted = |from: Level| level.is_none_or(|level| level >= from);
        let sessions: Vec<_> =
            listeners.filter(|(_, from)| wanted(*from)).map(|(session, _)| session.clone()).collect();
        for session in sessions {
            self.deliver(&session, line);
        }
    }

    /// A message without a recipient goes to the only session.
    fn tells_somebody(&mut self, line: &Bytes) {
        match self.only_party() {
            From::Session(session) => self.deliver(&session, line),
            From::Request(number) => {
                if let Some(pending) = self.inflight.get(number) {
                    pending.reply.push(Reply::Message(line.clone())).ok();
                }
            }
            From::Nobody | From::Several => {
                debug!("a notification does not say for whom it is, and is left out")
            }
        }
    }

    /// A question is open no more.
    pub(super) fn told(&mut self, number: u64) -> Option<ServerRequest> {
        let asked = self.server_requests.remove(&number)?;
        if let Some(pending) = self.inflight.get(asked.request) {
            pending.pulse.told();
        }
        Some(asked)
    }
}
