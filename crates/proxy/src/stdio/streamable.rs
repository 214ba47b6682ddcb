//! Streamable HTTP in front of a stdio server.

use http::{HeaderMap, HeaderValue, Method as HttpMethod, Response, StatusCode, header};
use skep_gateway::{
    headers::{MCP_PROTOCOL_VERSION, MCP_SESSION_ID},
    http::{Body, response},
    message::Exchange,
};
use skep_mcp::{Envelope, Era, Message, Method, Rejection, Revision, SessionId};
use tokio::time::timeout;

use super::{
    bridge::{Client, Forwarded},
    events::{self, ResponseStream, SessionStream, Source},
    inflight::{Carries, SessionKey},
    member::Abilities,
    outbox::{Reply, outbox},
    router::Router,
    server::StdioServer,
    status,
};
use crate::limits;

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
                let mut rejected = response::empty(StatusCode::METHOD_NOT_ALLOWED);
                let allowed = HeaderValue::from_static("GET, POST, DELETE");
                rejected.headers_mut().insert(header::ALLOW, allowed);
                Ok(rejected)
            }
        }
    }

    async fn post(&self, exchange: &Exchange) -> Result<Response<Body>, Rejection> {
        let Some(message) = &exchange.message else {
            return Ok(response::text(StatusCode::BAD_REQUEST, "a message is missing\n"));
        };
        let envelope = message.envelope()?;
        if message.is_initialize() && matches!(envelope.message(), Message::Request { .. }) {
            return self.initialize(exchange, &envelope).await;
        }
        let session = match message.era {
            Era::Legacy => self.requested_session(exchange)?,
            // Requests are stateless, and methods about sessions do not exist any more.
            Era::Modern if is_about_session(message.method) => return Err(Rejection::Method),
            Era::Modern => None,
        };
        match envelope.message() {
            Message::Request { .. } => self.request(exchange, &envelope, session).await,
            Message::Notification { .. } => {
                let route = |router: &mut Router| router.notification(&envelope, session.as_ref());
                self.bridge.send(&envelope, &Client::of(exchange), route).await?;
                Ok(response::empty(StatusCode::ACCEPTED))
            }
            Message::Response { .. } => {
                let route = |router: &mut Router| router.response(&envelope, session.as_ref());
                self.bridge.send(&envelope, &Client::of(exchange), route).await?;
                Ok(response::empty(StatusCode::ACCEPTED))
            }
        }
    }

    /// Starts a session for a client, if the server accepts its `initialize`.
    async fn initialize(
        &self,
        exchange: &Exchange,
        envelope: &Envelope<'_>,
    ) -> Result<Response<Body>, Rejection> {
        let answer = self.bridge.initialize(&exchange.body, Client::of(exchange)).await?;
        let accepted = matches!(
            Envelope::parse_within(&answer, super::DEPTH)?.message(),
            Message::Response { outcome: skep_mcp::Outcome::Result(_), .. }
        );
        let mut response = match status::of(&answer, envelope) {
            StatusCode::OK if accepts_stream(&exchange.headers) => events::single(&answer),
            status => response::json(status, answer.into_bytes()),
        };
        if accepted {
            let session = self.start_session(exchange, Abilities::of(envelope))?;
            let id = HeaderValue::from_str(&session).map_err(|_| Rejection::Internal)?;
            response.headers_mut().insert(&MCP_SESSION_ID, id);
        }
        Ok(response)
    }

    async fn request(
        &self,
        exchange: &Exchange,
        envelope: &Envelope<'_>,
        session: Option<SessionKey>,
    ) -> Result<Response<Body>, Rejection> {
        let streams = accepts_stream(&exchange.headers);
        let carries = if streams { Carries::Stream } else { Carries::Answer };
        match self.bridge.request(envelope, session.as_ref(), carries, &Client::of(exchange)).await? {
            Forwarded::Answer(answer) if streams => Ok(events::single(&answer)),
            Forwarded::Answer(answer) => Ok(response::json(StatusCode::OK, answer.into_bytes())),
            Forwarded::Waiting(waiting) if streams => {
                let id = exchange.message.as_ref().and_then(|message| message.id.clone()).unwrap_or_default();
                self.stream(ResponseStream { first: None, waiting, id, phase: self.phase() }, envelope).await
            }
            // A stream of messages needs a client that accepts one.
            Forwarded::Waiting(_) if envelope.method() == Some(Method::SubscriptionsListen) => {
                Ok(response::text(StatusCode::NOT_ACCEPTABLE, "Accept must have text/event-stream\n"))
            }
            Forwarded::Waiting(waiting) => match waiting.answer().await? {
                Some(answer) => Ok(response::json(status::of(&answer, envelope), answer.into_bytes())),
                // The client has cancelled it, and expects no response.
                None => Ok(response::empty(StatusCode::ACCEPTED)),
            },
        }
    }

    /// A stream up to the response. Some responses have a status, which must be known before the stream starts.
    async fn stream(
        &self,
        mut stream: ResponseStream,
        envelope: &Envelope<'_>,
    ) -> Result<Response<Body>, Rejection> {
        if status::may_have_status(envelope) {
            // A client may give up after a long silence, so the stream then starts without a response.
            match timeout(limits::KEEP_ALIVE, stream.next()).await {
                Ok(Some(Reply::Rejected(rejection))) => return Err(rejection),
                Ok(Some(Reply::Answer(answer))) if status::of(&answer, envelope) != StatusCode::OK => {
                    return Ok(response::json(status::of(&answer, envelope), answer.into_bytes()));
                }
                Ok(first) => stream.first = first,
                Err(_) => {}
            }
        }
        Ok(events::response(Source::Request(stream)))
    }

    /// The session's own stream. A new one takes the place of an old one.
    fn listen(&self, exchange: &Exchange) -> Result<Response<Body>, Rejection> {
        let Some(session) = self.requested_session(exchange)? else {
            return Ok(response::text(StatusCode::BAD_REQUEST, "Mcp-Session-Id is missing\n"));
        };
        if !accepts_stream(&exchange.headers) {
            return Ok(response::text(StatusCode::NOT_ACCEPTABLE, "Accept must have text/event-stream\n"));
        }
        let (stream, inbox) = outbox(Some(exchange.memory()));
        let mut router = self.bridge.router();
        let member = router.members.get_mut(&session).ok_or(Rejection::Session)?;
        member.stream = Some(stream);
        let (sessions, phase) = (self.sessions.clone(), self.phase());
        let stream = SessionStream { first: None, inbox, session, sessions, phase, _guard: None };
        Ok(events::response(Source::Session(stream)))
    }

    fn delete(&self, exchange: &Exchange) -> Result<Response<Body>, Rejection> {
        let Some(session) = self.requested_session(exchange)? else {
            return Ok(response::text(StatusCode::BAD_REQUEST, "Mcp-Session-Id is missing\n"));
        };
        self.sessions.remove(&session);
        self.bridge.router().end_session(&session);
        Ok(response::empty(StatusCode::NO_CONTENT))
    }

    /// The session that the request names, which must be the caller's.
    fn requested_session(&self, exchange: &Exchange) -> Result<Option<SessionKey>, Rejection> {
        let mut ids = exchange.headers.get_all(&MCP_SESSION_ID).iter();
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
    headers.get_all(&MCP_PROTOCOL_VERSION).iter().all(|value| Revision::named(value.as_bytes()).is_some())
}
