//! The HTTP+SSE transport of 2024-11-05 in front of a stdio server: a client opens a stream at `/sse`, whose first event names
//! the endpoint for messages, and receives every response on its stream.

use bytes::Bytes;
use http::{Method as HttpMethod, Response, StatusCode, Uri};
use skep_gateway::{
    body::CountedBytes,
    http::{Body, response},
    message::Exchange,
};
use skep_mcp::{Id, Message, Rejection, SessionId, sse};

use super::{
    bridge::{Client, Forwarded},
    events::{self, SessionGuard, SessionStream, Source},
    inflight::{Carries, SessionKey},
    member::Abilities,
    outbox::{Reply, outbox},
    router::Router,
    server::StdioServer,
    waiting::Waiting,
};

impl StdioServer {
    pub(super) async fn http_sse(&self, exchange: &Exchange) -> Result<Response<Body>, Rejection> {
        match (exchange.path.path(), &exchange.method) {
            ("/sse", &HttpMethod::GET) => self.open(exchange),
            ("/messages", &HttpMethod::POST) => self.message(exchange).await,
            ("/sse" | "/messages", _) => Ok(response::empty(StatusCode::METHOD_NOT_ALLOWED)),
            _ => Ok(response::text(StatusCode::NOT_FOUND, "the server is at /sse\n")),
        }
    }

    /// Opens a session, which lasts as long as its stream.
    fn open(&self, exchange: &Exchange) -> Result<Response<Body>, Rejection> {
        let session = self.start_session(exchange, Abilities::default())?;
        let guard = SessionGuard {
            bridge: self.bridge.clone(),
            session: session.clone(),
            sessions: self.sessions.clone(),
        };
        let (stream, inbox) = outbox(Some(exchange.memory()));
        if let Some(member) = self.bridge.router().members.get_mut(&session) {
            member.stream = Some(stream);
        }
        let address = self.endpoint.reference(&exchange.headers, &format!("/messages?session_id={session}"));
        Ok(events::response(Source::Session(SessionStream {
            first: Some(sse::encoded("endpoint", address.as_bytes())),
            inbox,
            session,
            sessions: self.sessions.clone(),
            phase: self.phase(),
            _guard: Some(guard),
        })))
    }

    async fn message(&self, exchange: &Exchange) -> Result<Response<Body>, Rejection> {
        let Some(id) = session_id(exchange) else {
            return Ok(response::text(StatusCode::BAD_REQUEST, "session_id is missing\n"));
        };
        let session = self.session(exchange, id.as_str())?;
        let Some(message) = &exchange.message else {
            return Ok(response::text(StatusCode::BAD_REQUEST, "a message is missing\n"));
        };
        let envelope = message.envelope()?;
        match envelope.message() {
            Message::Request { id, .. } if message.is_initialize() => {
                if let Some(member) = self.bridge.router().members.get_mut(&session) {
                    member.abilities = Abilities::of(&envelope);
                }
                let answer = self.bridge.initialize(&exchange.body, Client::of(exchange)).await;
                let rejected = |rejection: Rejection| Bytes::from(rejection.body(Some(id))).into();
                self.reply(&session, answer.unwrap_or_else(rejected));
            }
            Message::Request { .. } => {
                let client = Client::of(exchange);
                match self.bridge.request(&envelope, Some(&session), Carries::Stream, &client).await? {
                    Forwarded::Answer(answer) => self.reply(&session, answer),
                    Forwarded::Waiting(waiting) => self.forward(session, waiting, message.id.clone()),
                }
            }
            Message::Notification { .. } => {
                let route = |router: &mut Router| router.notification(&envelope, Some(&session));
                self.bridge.send(&envelope, &Client::of(exchange), route).await?;
            }
            Message::Response { .. } => {
                let route = |router: &mut Router| router.response(&envelope, Some(&session));
                self.bridge.send(&envelope, &Client::of(exchange), route).await?;
            }
        }
        Ok(response::text(StatusCode::ACCEPTED, "Accepted"))
    }

    fn reply(&self, session: &SessionKey, message: CountedBytes) {
        self.bridge.router().stream(session, message);
    }

    /// Forwards the replies to a request to the session's stream. Requests in flight are bounded, and so are these tasks.
    fn forward(&self, session: SessionKey, mut waiting: Waiting, id: Option<Bytes>) {
        let bridge = self.bridge.clone();
        tokio::spawn(async move {
            while let Some(reply) = waiting.next().await {
                let message = match reply {
                    Reply::Message(message) | Reply::Answer(message) => message,
                    Reply::Event(event) => event.message.into(),
                    Reply::Rejected(rejection) => {
                        Bytes::from(rejection.body(id.as_deref().and_then(Id::spelled))).into()
                    }
                };
                bridge.router().stream(&session, message);
            }
        });
    }
}

fn session_id(exchange: &Exchange) -> Option<SessionId> {
    let uri = Uri::from(exchange.path.clone());
    let id = uri.query()?.split('&').find_map(|pair| pair.strip_prefix("session_id="))?;
    SessionId::parse(id.as_bytes()).ok()
}
