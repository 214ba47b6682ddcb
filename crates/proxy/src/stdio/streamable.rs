//! Streamable HTTP in front of a stdio server.

use http::{HeaderMap, HeaderName, HeaderValue, Method as HttpMethod, Response, StatusCode, header};
use skep_gateway::{
    http::{Body, response},
    message::Exchange,
};
use skep_mcp::{
    Envelope, Era, Message, Method, Refusal, Revision, SessionId,
    header::{MCP_PROTOCOL_VERSION, MCP_SESSION_ID},
};
use tokio::time::timeout;

use super::{
    bridge::Told,
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
    pub(super) async fn streamable(&self, exchange: &Exchange) -> Result<Response<Body>, Refusal> {
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

    async fn post(&self, exchange: &Exchange) -> Result<Response<Body>, Refusal> {
        let Some(call) = &exchange.call else {
            return Ok(response::text(StatusCode::BAD_REQUEST, "a message is missing\n"));
        };
        let envelope = Envelope::parse(&exchange.body)?;
        if call.is_initialize() && matches!(envelope.message(), Message::Request { .. }) {
            return self.begun(exchange, &envelope).await;
        }
        let session = match call.era {
            Era::Legacy => self.named(exchange)?,
            // Each request stands for itself, and what was about a session is gone.
            Era::Modern if is_about_session(call.method) => return Err(Refusal::Method),
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

    /// A client begins a session. It gets one if the server agrees.
    async fn begun(&self, exchange: &Exchange, envelope: &Envelope<'_>) -> Result<Response<Body>, Refusal> {
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
            let id = HeaderValue::from_str(&session).map_err(|_| Refusal::Internal)?;
            response.headers_mut().insert(SESSION, id);
        }
        Ok(response)
    }

    async fn asked(
        &self,
        exchange: &Exchange,
        envelope: &Envelope<'_>,
        session: Option<SessionKey>,
    ) -> Result<Response<Body>, Refusal> {
        let streams = accepts_stream(&exchange.headers);
        let carries = if streams { Carries::Stream } else { Carries::Answer };
        match self.bridge.request(envelope, session.as_ref(), carries).await? {
            Told::Answer(answer) if streams => Ok(events::single(&answer)),
            Told::Answer(answer) => Ok(response::json(StatusCode::OK, answer)),
            Told::Waiting(waiting) if streams => {
                let id = exchange.call.as_ref().and_then(|call| call.id.clone()).unwrap_or_default();
                self.streamed(Answering { first: None, waiting, id, phase: self.phase() }, envelope).await
            }
            // What comes in pieces needs somebody who reads them.
            Told::Waiting(_) if envelope.method() == Some(Method::SubscriptionsListen) => {
                Ok(response::text(StatusCode::NOT_ACCEPTABLE, "Accept must have text/event-stream\n"))
            }
            Told::Waiting(waiting) => match waiting.answer().await? {
                Some(answer) => Ok(response::json(status::of(&answer, envelope), answer)),
                // The client has cancelled it, and wants no answer.
                None => Ok(response::empty(StatusCode::ACCEPTED)),
            },
        }
    }

    /// A stream up to the answer. Some answers have a status, which must be known before the stream begins.
    async fn streamed(
        &self,
        mut answering: Answering,
        envelope: &Envelope<'_>,
    ) -> Result<Response<Body>, Refusal> {
        if status::may_matter(envelope) {
            // A client that hears nothing for long may go, so the stream begins without an answer then.
            match timeout(limits::KEEP_ALIVE, answering.next()).await {
                Ok(Some(Reply::Refused(refusal))) => return Err(refusal),
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
    fn listen(&self, exchange: &Exchange) -> Result<Response<Body>, Refusal> {
        let Some(session) = self.named(exchange)? else {
            return Ok(response::text(StatusCode::BAD_REQUEST, "Mcp-Session-Id is missing\n"));
        };
        if !accepts_stream(&exchange.headers) {
            return Ok(response::text(StatusCode::NOT_ACCEPTABLE, "Accept must have text/event-stream\n"));
        }
        let (stream, inbox) = outbox();
        let mut router = self.bridge.router();
        let member = router.members.get_mut(&session).ok_or(Refusal::Session)?;
        member.stream = Some(stream);
        let (sessions, phase) = (self.sessions.clone(), self.phase());
        let listening = Listening { first: None, inbox, session, sessions, phase, _bound: None };
        Ok(events::response(Source::Session(listening)))
    }

    fn delete(&self, exchange: &Exchange) -> Result<Response<Body>, Refusal> {
        let Some(session) = self.named(exchange)? else {
            return Ok(response::text(StatusCode::BAD_REQUEST, "Mcp-Session-Id is missing\n"));
        };
        self.sessions.remove(&session);
        self.bridge.router().ended(&session);
        Ok(response::empty(StatusCode::NO_CONTENT))
    }

    /// The session that the request names, which must be the caller's.
    fn named(&self, exchange: &Exchange) -> Result<Option<SessionKey>, Refusal> {
        let mut ids = exchange.headers.get_all(&SESSION).iter();
        match (ids.next(), ids.next()) {
            (None, _) => Ok(None),
            (Some(id), None) => {
                let id = SessionId::parse(id.as_bytes()).map_err(|_| Refusal::Session)?;
                self.session(exchange, id.as_str()).map(Some)
            }
            (Some(_), Some(_)) => Err(Refusal::Session),
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

/// Whether it asks for something that lasts as long as a session.
fn is_about_session(method: Option<Method>) -> bool {
    matches!(
        method,
        Some(Method::ResourcesSubscribe | Method::ResourcesUnsubscribe | Method::LoggingSetLevel)
    )
}

fn is_known_revision(headers: &HeaderMap) -> bool {
    headers.get_all(MCP_PROTOCOL_VERSION).iter().all(|value| Revision::named(value.as_bytes()).is_some())
}
