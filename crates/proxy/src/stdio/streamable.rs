//! Streamable HTTP in front of a stdio server.

use http::{HeaderMap, HeaderName, HeaderValue, Method as HttpMethod, Response, StatusCode, header};
use skep_gateway::{
    http::{Body, response},
    message::Exchange,
};
use skep_mcp::{
    Envelope, Era, Message, Method, Rejection, Revision, SessionId,
    header::{MCP_PROTOCOL_VERSION, MCP_SESSION_ID},
};
use tokio::time::timeout;

use super::{
    bridge::Forwarded,
    events::{self, Answering, Listening, Source},
    inflight::{Carries, SessionKey},
    member::Abilities,
    outbox::{Reply, outbox},
    server::StdioServer,
    status,
};
use crate::limits;

const SESSION: HeaderName = HeaderName::from_static(MCP_SESSION_ID);

impl StdioServer {
    pub(super) async fn streamable(&self, exchange: &Exchange) -> Result<Response<Body>, Rejection> {
        if exchange.path.path() != "/mcp" {
            return Ok(response::text(StatusCode::NOT_FOUND, "the server is at /mcp\n"));
        }
        if self.strict && !is_known_revision(&exchange.headers) {
            return Ok(response::text(StatusCode::BAD_REQUEST, "MCP-Protocol-Version is not known\n"));
        }
        match exchange.method {
            HttpMethod::POST => self.post(exchange).await,
            HttpMethod::GET => self.listen(exchange),
            HttpMethod::DELETE => self.delete(exchange),
            _ => {
                let mut refused = response::empty(StatusCode::METHOD_NOT_ALLOWED);
                let allowed = HeaderValue::from_static("GET, POST, DELETE");
                refused.headers_mut().insert(header::ALLOW, allowed);
                Ok(refused)
            }
        }
    }

    async fn post(&self, exchange: &Exchange) -> Result<Response<Body>, Rejection> {
        let Some(call) = &exchange.call else {
            return Ok(response::text(StatusCode::BAD_REQUEST, "a message is missing\n"));
        };
        let envelope = call.envelope()?;
        if call.is_initialize() && matches!(envelope.message(), Message::Request { .. }) {
            return self.begun(exchange, &envelope).await;
        }
        let session = match call.era {
            Era::Legacy => self.named(exchange)?,
            // Each request is on its own, and methods about sessions do not exist any more.
            Era::Modern if is_about_session(call.method) => return Err(Rejection::Method),
            Era::Modern => None,
        };
        match envelope.message() {
            Message::Request { .. } => self.asked(exchange, &envelope, session).await,
            Message::Notification { .. } => {
                self.bridge.tell(|router| router.notification(&envelope, session.as_ref())).await?;
                Ok(response::empty(StatusCode::ACCEPTED))
            }
            Message::Response { .. } => {
                self.bridge.tell(|router| router.response(&envelope, session.as_ref())).await?;
                Ok(response::empty(StatusCode::ACCEPTED))
            }
        }
    }

    /// Starts a session for a client, if the server accepts its `initialize`.
    async fn begun(&self, exchange: &Exchange, envelope: &Envelope<'_>) -> Result<Response<Body>, Rejection> {
        let answer = self.bridge.initialize(exchange.body.clone()).await?;
        let agreed = matches!(
            Envelope::parse_within(&answer, super::DEPTH)?.message(),
            Message::Response { outcome: skep_mcp::Outcome::Result(_), .. }
        );
        let mut response = match status::of(&answer, envelope) {
            StatusCode::OK if accepts_stream(&exchange.headers) => events::single(&answer),
            status => response::json(status, answer),
        };
        if agreed {
            let session = self.begin(exchange, Abilities::of(envelope))?;
            let id = HeaderValue::from_str(&session).map_err(|_| Rejection::Internal)?;
            response.headers_mut().insert(SESSION, id);
        }
        Ok(response)
    }

    async fn asked(
        &self,
        exchange: &Exchange,
        envelope: &Envelope<'_>,
        session: Option<SessionKey>,
    ) -> Result<Response<Body>, Rejection> {
        let streams = accepts_stream(&exchange.headers);
        let carries = if streams { Carries::Stream } else { Carries::Answer };
        match self.bridge.request(envelope, session.as_ref(), carries).await? {
            Forwarded::Answer(answer) if streams => Ok(events::single(&answer)),
            Forwarded::Answer(answer) => Ok(response::json(StatusCode::OK, answer)),
            Forwarded::Waiting(waiting) if streams => {
                let id = exchange.call.as_ref().and_then(|call| call.id.clone()).unwrap_or_default();
                self.streamed(Answering { first: None, waiting, id, phase: self.phase() }, envelope).await
            }
            // A stream of messages needs a client that accepts one.
            Forwarded::Waiting(_) if envelope.method() == Some(Method::SubscriptionsListen) => {
                Ok(response::text(StatusCode::NOT_ACCEPTABLE, "Accept must have text/event-stream\n"))
            }
            Forwarded::Waiting(waiting) => match waiting.answer().await? {
                Some(answer) => Ok(response::json(status::of(&answer, envelope), answer)),
                // The client has cancelled it, and wants no answer.
                None => Ok(response::empty(StatusCode::ACCEPTED)),
            },
        }
    }

    /// A stream up to the answer. Some answers have a status, which must be known before the stream starts.
    async fn streamed(
        &self,
        mut answering: Answering,
        envelope: &Envelope<'_>,
    ) -> Result<Response<Body>, Rejection> {
        if status::may_matter(envelope) {
            // A client may give up after a long silence, so the stream then starts without a response.
            match timeout(limits::KEEP_ALIVE, answering.next()).await {
                Ok(Some(Reply::Rejected(rejection))) => return Err(rejection),
                Ok(Some(Reply::Answer(answer))) if status::of(&answer, envelope) != StatusCode::OK => {
                    return Ok(response::json(status::of(&answer, envelope), answer));
                }
                Ok(first) => answering.first = first,
                Err(_) => {}
            }
        }
        Ok(events::response(Source::Request(answering)))
    }

    /// The session's own stream. A new one takes the place of an old one.
    fn listen(&self, exchange: &Exchange) -> Result<Response<Body>, Rejection> {
        let Some(session) = self.named(exchange)? else {
            return Ok(response::text(StatusCode::BAD_REQUEST, "Mcp-Session-Id is missing\n"));
        };
        if !accepts_stream(&exchange.headers) {
            return Ok(response::text(StatusCode::NOT_ACCEPTABLE, "Accept must have text/event-stream\n"));
        }
        let (stream, inbox) = outbox();
        let mut router = self.bridge.router();
        let member = router.members.get_mut(&session).ok_or(Rejection::Session)?;
        member.stream = Some(stream);
        let (sessions, phase) = (self.sessions.clone(), self.phase());
        let listening = Listening { first: None, inbox, session, sessions, phase, _bound: None };
        Ok(events::response(Source::Session(listening)))
    }

    fn delete(&self, exchange: &Exchange) -> Result<Response<Body>, Rejection> {
        let Some(session) = self.named(exchange)? else {
            return Ok(response::text(StatusCode::BAD_REQUEST, "Mcp-Session-Id is missing\n"));
        };
        self.sessions.remove(&session);
        self.bridge.router().ended(&session);
        Ok(response::empty(StatusCode::NO_CONTENT))
    }

    /// The session that the request names, which must be the caller's.
    fn named(&self, exchange: &Exchange) -> Result<Option<SessionKey>, Rejection> {
        let mut ids = exchange.headers.get_all(&SESSION).iter();
        match (ids.next(), ids.next()) {
            (None, _) => Ok(None),
            (Some(id), None) => {
                let id = SessionId::parse(id.as_bytes()).map_err(|_| Rejection::Session)?;
                self.session(exchange, id.as_str()).map(Some)
            }
            (Some(_), Some(_)) => Err(Rejection::Session),
        }
    }
}

/// Whether the client reads streams.
fn accepts_stream(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let types = accepted.flat_map(|value| value.split(','));
    types
        .map(|value| value.split(';').next().unwrap_or_default().trim())
        .any(|value| value.eq_ignore_ascii_case("text/event-stream"))
}

/// Whether its effect lasts as long as a session.
fn is_about_session(method: Option<Method>) -> bool {
    matches!(
        method,
        Some(Method::ResourcesSubscribe | Method::ResourcesUnsubscribe | Method::LoggingSetLevel)
    )
}

fn is_known_revision(headers: &HeaderMap) -> bool {
    headers.get_all(MCP_PROTOCOL_VERSION).iter().all(|value| Revision::named(value.as_bytes()).is_some())
}
