//! Messages of clients to the server.

use bytes::Bytes;
use skep_gateway::identity::Holder;
use skep_mcp::{
    Edits, Envelope, Id, Json, Kind, Method, Raw, Rejection, SpliceError, empty_result, stdio::line_of,
};

use super::{
    inflight::{Carries, Effect, Pending, Pulse, SessionKey},
    level::Level,
    outbox::Outbox,
    replaced::Replaced,
    router::{Router, number_in},
};
use crate::limits;

/// A request after routing.
pub(super) enum Outgoing {
    /// It goes to the server, as the request of this number.
    Request(Numbered),
    /// The bridge responds itself.
    Response(Vec<u8>),
}

/// A request with its number.
pub(super) struct Numbered {
    pub(super) number: u64,
    /// The level of log messages in place of the requested one: other sessions want lower ones than this, which then gets
    /// only those that it wants.
    level: Option<Level>,
}

impl Numbered {
    /// The request, with the number in place of its id and of its progress token, and otherwise unchanged. It may have many
    /// megabytes, so it is copied without the lock of the router.
    pub(super) fn line(&self, envelope: &Envelope<'_>) -> Result<Vec<u8>, Rejection> {
        let Some(id) = envelope.id() else { return Err(Rejection::Internal) };
        let mut edits = Edits::of(envelope.bytes()).replace(id.raw(), Json::Number(self.number));
        if let Some(token) = progress_token(envelope) {
            edits = edits.replace(token, Json::Number(self.number));
        }
        if let (Some(level), Some(target)) = (self.level, envelope.target()) {
            edits = edits.replace(target.raw, Json::Text(level.name()));
        }
        Ok(line_of(edits.bytes().map_err(internal)?))
    }
}

fn progress_token<'a>(envelope: &Envelope<'a>) -> Option<Raw<'a>> {
    envelope.meta().progress_token().filter(|token| matches!(token.kind(), Kind::Text | Kind::Number))
}

/// The client of a request, and how it gets the response.
pub(super) struct Requester {
    pub(super) session: Option<SessionKey>,
    /// Whose requests are counted. Those of the bridge itself are not.
    pub(super) holder: Option<Holder>,
    pub(super) carries: Carries,
    pub(super) reply: Outbox,
    pub(super) pulse: std::sync::Arc<Pulse>,
}

impl Router {
    /// Registers a request, under a number.
    pub(super) fn request(
        &mut self,
        envelope: &Envelope<'_>,
        requester: Requester,
    ) -> Result<Outgoing, Rejection> {
        let Some(id) = envelope.id() else { return Err(Rejection::Internal) };
        let mut effect = Effect::Nothing;
        let mut level = None;
        let about_session = matches!(
            envelope.method(),
            Some(Method::ResourcesSubscribe | Method::ResourcesUnsubscribe | Method::LoggingSetLevel)
        );
        if about_session {
            // The server knows one client. What several share is stored here, by session.
            let Some(session) = &requester.session else { return Err(Rejection::Session) };
            let name = envelope.target().map(|target| target.name().into_owned()).unwrap_or_default();
            match envelope.method() {
                Some(Method::ResourcesSubscribe) if self.members.has_room(session, &name) => {
                    if self.members.is_subscribed(&name) {
                        self.members.subscribe(session, &name);
                        return Ok(Outgoing::Response(empty_result(id)));
                    }
                    effect = Effect::Subscribed(name.into());
                }
                Some(Method::ResourcesSubscribe) => {
                    return Err(Rejection::Unavailable("room for one more subscription is"));
                }
                Some(Method::ResourcesUnsubscribe) => {
                    if !self.members.unsubscribe(session, &name) {
                        return Ok(Outgoing::Response(empty_result(id)));
                    }
                }
                // The server rejects an unknown level.
                _ => {
                    let wanted = Level::named(&name);
                    effect = wanted.map_or(Effect::Nothing, Effect::Level);
                    let others = self.members.listeners().filter(|(other, _)| *other != session);
                    let least = others.map(|(_, level)| level).min();
                    level = least.filter(|least| wanted.is_some_and(|wanted| *least < wanted));
                }
            }
        }
        let number = self.number();
        let token = progress_token(envelope);
        let pending = Pending {
            session: requester.session,
            holder: requester.holder,
            id: id.raw().as_str().as_bytes().into(),
            token: token.map(|token| token.as_str().into()),
            effect,
            carries: requester.carries,
            reply: requester.reply,
            pulse: requester.pulse,
        };
        self.inflight.insert(number, pending)?;
        Ok(Outgoing::Request(Numbered { number, level }))
    }

    /// A notification for the server, unless it is not for the server.
    pub(super) fn notification<'a>(
        &mut self,
        envelope: &Envelope<'a>,
        session: Option<&SessionKey>,
    ) -> Option<Replaced<'a>> {
        match envelope.method() {
            // The server has one client, which becomes ready once.
            Some(Method::Initialized) => {
                let handshake = self.handshake.as_mut()?;
                if handshake.initialized.is_some() {
                    return None;
                }
                handshake.initialized = Some(Bytes::copy_from_slice(envelope.bytes()));
            }
            Some(Method::Cancelled) => return self.cancellation(envelope, session?),
            // Only requests of the server to this client.
            Some(Method::Progress) => {
                let session = session?;
                self.server_requests.values().find(|request| request.session == *session)?;
            }
            _ => {}
        }
        Some(Replaced::default())
    }

    /// The client has cancelled one of its requests.
    fn cancellation<'a>(&mut self, envelope: &Envelope<'a>, session: &SessionKey) -> Option<Replaced<'a>> {
        let target = envelope.target()?;
        let key = Id::spelled(target.raw.as_str().as_bytes())?.key();
        let is_id = |id: &[u8]| Id::spelled(id).is_some_and(|id| id.key() == key);
        let pending = self.inflight.of(session).find(|(_, pending)| is_id(&pending.id));
        let number = match pending.map(|(number, _)| number) {
            Some(number) => {
                self.abandon(number, limits::CANCEL_TIME);
                number
            }
            // The client has disconnected, which does not cancel it.
            None => self.inflight.cancel_abandoned(session, is_id, limits::CANCEL_TIME)?,
        };
        Some(Replaced::by_number(target.raw, number))
    }

    /// A client's response to a request of the server, if that was sent in this session.
    pub(super) fn response<'a>(
        &mut self,
        envelope: &Envelope<'a>,
        session: Option<&SessionKey>,
    ) -> Option<Replaced<'a>> {
        let id = envelope.id()?;
        let number = number_in(id.raw())?;
        if self.server_requests.get(&number)?.session != *session? {
            return None;
        }
        let request = self.remove_server_request(number)?;
        Some(Replaced::by_spelled(id.raw(), Id::spelled(&request.id)?.raw()))
    }
}

fn internal(_: SpliceError) -> Rejection {
    Rejection::Internal
}
