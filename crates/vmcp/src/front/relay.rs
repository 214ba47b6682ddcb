//! What a backend sends for one request, on its way to the client.

use std::sync::Arc;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use bytes::Bytes;
use futures::{StreamExt, stream};
use http::{Response, StatusCode};
use skep_gateway::http::{Body, events};
use skep_mcp::{Edits, Envelope, Era, Json, Message, Method, Outcome, sse};
use tracing::debug;

use super::{
    ClientRequest, VirtualServer,
    answer::{failure, translated},
    rpc::{self, RpcError},
};
use crate::{
    backend::{Backend, BackendError, Caller, Link, Messages, rpc_error},
    session::{ClientSession, InFlight, Level},
};

/// The messages of a backend for one request of a client.
pub(super) struct Relay {
    server: Arc<str>,
    method: Method,
    era: Era,
    /// The client's id, as it is spelled.
    id: Box<str>,
    session: Arc<ClientSession>,
    caller: Caller,
    backend: Arc<Backend>,
    link: Arc<Link>,
    messages: Messages,
    in_flight: InFlight,
    has_ended: bool,
}

/// What the client gets.
pub(super) enum Step {
    /// A notification or request, before the response.
    Message(Bytes),
    /// The response, as a message.
    Response(StatusCode, Bytes),
}

impl Relay {
    pub(super) fn new(
        server: &VirtualServer,
        request: &ClientRequest<'_>,
        backend: Arc<Backend>,
        link: Arc<Link>,
        messages: Messages,
        in_flight: InFlight,
    ) -> Self {
        Self {
            server: server.name.clone(),
            method: request.method,
            era: request.era,
            id: request.id.into(),
            session: request.session.clone(),
            caller: request.caller.clone(),
            backend,
            link,
            messages,
            in_flight,
            has_ended: false,
        }
    }

    /// The next thing that the client gets, or nothing after the response.
    async fn next(&mut self) -> Option<Step> {
        while !self.has_ended {
            let next = match self.messages.next(self.backend.timeout).await {
                Ok(Some(message)) => self.step(message).await,
                Ok(None) => Err(BackendError::Broken),
                Err(error) => Err(error),
            };
            match next {
                Ok(None) => {}
                Ok(Some(step)) => {
                    self.has_ended = matches!(step, Step::Response(..));
                    return Some(step);
                }
                Err(error) => {
                    debug!(backend = &*self.backend.name, %error, "a request failed");
                    self.has_ended = true;
                    return Some(self.failed(&error));
                }
            }
        }
        None
    }

    async fn step(&self, message: Bytes) -> Result<Option<Step>, BackendError> {
        let envelope = Envelope::parse(&message).map_err(|_| BackendError::Malformed)?;
        match envelope.message() {
            Message::Response { id, outcome } => {
                // One to another request would be a mistake of the backend.
                if id.is_some_and(|id| id.raw().as_str() != self.in_flight.number.to_string()) {
                    return Ok(None);
                }
                match outcome {
                    Outcome::Result(result) => {
                        let result = translated(result, self.method, self.era, &self.server)
                            .map_err(|problem| BackendError::Rpc { code: 0, message: problem.into() })?;
                        let body = rpc::result_body(&self.id, &result);
                        Ok(Some(Step::Response(StatusCode::OK, body.into())))
                    }
                    Outcome::Error(error) => Err(rpc_error(error)),
                }
            }
            Message::Notification { .. } => {
                let is_forwarded = for_client(&envelope, &self.session, &self.backend);
                Ok(is_forwarded.then(|| Step::Message(message.clone())))
            }
            Message::Request { id, .. } => {
                let forwarded = for_session(&envelope, &self.session, self.era);
                if forwarded {
                    let id = request_id(&self.backend.name, id.raw().as_str());
                    return Ok(readdressed(&envelope, &id).map(Step::Message));
                }
                self.decline(&envelope).await;
                Ok(None)
            }
        }
    }

    /// Answers a request of the backend that the client cannot.
    async fn decline(&self, envelope: &Envelope<'_>) {
        decline(envelope, &self.backend, &self.link, &self.caller).await;
    }

    fn failed(&self, error: &BackendError) -> Step {
        let body = match failure(self.method, self.era, &self.backend.name, error) {
            Ok(result) => rpc::result_body(&self.id, &result),
            Err(error) => error.body(&self.id),
        };
        Step::Response(StatusCode::OK, body.into())
    }
}

/// The response: in JSON if the backend responds at once, or else as a stream of what comes before.
pub(super) async fn respond(mut relay: Relay) -> Response<Body> {
    let era = relay.era;
    match relay.next().await {
        Some(Step::Response(status, body)) => rpc::reply(status, body, era),
        None => RpcError::internal("no response").response(&relay.id.clone(), era),
        Some(Step::Message(first)) => {
            let first = stream::once(async move { Ok(sse::encoded("message", &first)) });
            let rest = stream::unfold(relay, |mut relay| async move {
                let (Step::Message(message) | Step::Response(_, message)) = relay.next().await?;
                Some((Ok(sse::encoded("message", &message)), relay))
            });
            events::response(Body::Made(first.chain(rest).boxed()))
        }
    }
}

/// Whether a notification of a backend is for the client. What is for the virtual server is done.
pub(super) fn for_client(envelope: &Envelope<'_>, session: &ClientSession, backend: &Backend) -> bool {
    match envelope.method() {
        Some(Method::ToolsListChanged | Method::PromptsListChanged | Method::ResourcesListChanged) => {
            // Clients get it once the lists have been read.
            session.forget_own_lists(&backend.name);
            backend.lists_changed();
            false
        }
        Some(Method::LogMessage) => {
            let level =
                envelope.params().and_then(|params| params.get("level")).and_then(skep_mcp::Raw::as_text);
            level.and_then(|level| Level::named(&level)).is_some_and(|level| session.wants(level))
        }
        _ => true,
    }
}

/// Whether a request of a backend is for the client: it must have declared that it can answer it.
pub(super) fn for_session(envelope: &Envelope<'_>, session: &ClientSession, era: Era) -> bool {
    era == Era::Legacy && envelope.method().and_then(capability).is_some_and(|name| session.can(name))
}

/// The capability that a client needs for a request of a server.
fn capability(method: Method) -> Option<&'static str> {
    match method {
        Method::SamplingCreateMessage => Some("sampling"),
        Method::ElicitationCreate => Some("elicitation"),
        Method::RootsList => Some("roots"),
        _ => None,
    }
}

/// Answers a request of a backend in place of the client.
pub(super) async fn decline(envelope: &Envelope<'_>, backend: &Backend, link: &Link, caller: &Caller) {
    let Some(id) = envelope.id() else { return };
    let id = id.raw().as_str();
    let body = match envelope.method() {
        Some(Method::Ping) => rpc::result_body(id, "{}"),
        _ => RpcError::new(rpc::METHOD_NOT_FOUND, "the client does not support this").body(id),
    };
    if let Err(error) = backend.notify(link, caller, body.into()).await {
        debug!(backend = &*backend.name, %error, "failed to respond to a backend");
    }
}

/// The id of a backend's request for the client, from which any replica knows where the response belongs.
pub(super) fn request_id(backend: &str, id: &str) -> String {
    format!("{}.{}", URL_SAFE_NO_PAD.encode(backend), URL_SAFE_NO_PAD.encode(id))
}

/// The backend and the id of its request.
pub(super) fn parsed_request_id(id: &str) -> Option<(String, String)> {
    let (backend, id) = id.split_once('.')?;
    let decoded = |text: &str| String::from_utf8(URL_SAFE_NO_PAD.decode(text).ok()?).ok();
    Some((decoded(backend)?, decoded(id)?))
}

/// The request with another id.
pub(super) fn readdressed(envelope: &Envelope<'_>, id: &str) -> Option<Bytes> {
    let edits = Edits::of(envelope.bytes()).replace(envelope.id()?.raw(), Json::Text(id));
    edits.bytes().ok().map(Bytes::from)
}
