//! A server that speaks MCP over HTTP: requests go to it as they came, with its own session id in place of the client's.

use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri, header, uri::PathAndQuery,
};
use http_body_util::Full;
use skep_config::{RunConfig, run_config::Transport};
use skep_mcp::{Era, Refusal, SessionId, header::MCP_SESSION_ID};
use tracing::{debug, warn};

use super::{Answered, Target, client::Client, connections::Error, head, reach::Reach, sse};
use crate::{
    ConfigError,
    body::Body,
    call::Call,
    endpoint::Endpoint,
    exchange::Exchange,
    health::Condition,
    limits,
    owner::Owner,
    runtime::kubernetes::Readiness,
    sessions::{Session, Sessions},
};

const SESSION: HeaderName = HeaderName::from_static(MCP_SESSION_ID);
/// The variable that has servers of others asked how they are.
const REMOTE_HEALTH_CHECKS: &str = "TOOLHIVE_REMOTE_HEALTHCHECKS";
const INITIALIZED: &[u8] = br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// A server behind HTTP.
pub(crate) struct HttpServer {
    client: Client,
    target: Target,
    sessions: Sessions,
    reach: Reach,
    /// How its pods are, where it has pods that we know of.
    readiness: Option<Readiness>,
    /// Where a server of 2024 gets messages.
    endpoint: Option<Endpoint>,
    /// Whether it is asked how it is.
    is_asked: bool,
    /// One asks at a time.
    asking: tokio::sync::Mutex<()>,
}

/// The session that a request is in.
struct Current {
    id: SessionId,
    session: Session,
}

impl HttpServer {
    /// The server that the RunConfig describes, at this address, of which the pods may be known.
    pub(crate) fn new(
        config: &RunConfig,
        target: Target,
        sessions: Sessions,
        readiness: Option<Readiness>,
    ) -> Result<Self, ConfigError> {
        let asks_remote =
            std::env::var(REMOTE_HEALTH_CHECKS).is_ok_and(|value| value == "true" || value == "1");
        Ok(Self {
            client: Client::new(target.remote)?,
            is_asked: !target.remote || asks_remote,
            target,
            sessions,
            reach: Reach::new(),
            readiness,
            endpoint: (config.transport == Transport::Sse).then(|| Endpoint::new(config)),
            asking: tokio::sync::Mutex::default(),
        })
    }

    /// Whether it is spoken to as in 2024.
    pub(crate) fn is_http_sse(&self) -> bool {
        self.endpoint.is_some()
    }

    /// How the server is. It is asked only if nobody has heard of it lately.
    pub(crate) async fn condition(&self) -> Condition {
        if !self.is_asked {
            return Condition::Unasked;
        }
        if !self.reach.answered_within(limits::HEALTH_AGE)
            && let Ok(_turn) = self.asking.try_lock()
        {
            let get = |uri| request(Method::GET, uri, HeaderMap::new(), Bytes::new());
            let root = PathAndQuery::from_static("/");
            let asked = self.client.send(self.target.uri(&Method::GET, &root, None).unwrap_or_default(), get);
            match tokio::time::timeout(limits::HEALTH_TIME, asked).await {
                Ok(Ok(answer)) if !answer.status().is_server_error() => self.reach.answered(),
                _ => {
                    self.reach.missed();
                }
            }
        }
        match &self.readiness {
            _ if !self.reach.is_missing() => Condition::Up,
            Some(readiness) if !readiness.serves() => Condition::Down("the server has no pod that is ready"),
            _ => Condition::Down("the server cannot be reached"),
        }
    }

    /// What goes on beside requests.
    pub(crate) async fn housekeeping(&self) {
        self.client.expire().await;
    }

    /// Passes a request on.
    pub(crate) async fn send(&self, exchange: &Exchange) -> Result<Response<Body>, Refusal> {
        let answer = self.sent(exchange).await?;
        Ok(match &self.endpoint {
            Some(endpoint) => sse::readdressed(&exchange.headers, &exchange.method, answer, endpoint),
            None => answer,
        })
    }

    async fn sent(&self, exchange: &Exchange) -> Result<Response<Body>, Refusal> {
        let current = self.current(exchange).await?;
        let session = current.as_ref().map(|current| &current.session);
        match self.forward(exchange, session).await {
            // In a box: what is seldom needed would make every request larger.
            Ok(response) if is_lost(&response, exchange, current.as_ref()) => {
                Box::pin(self.recovered(exchange, current, Ok(response))).await
            }
            Err(error) if current.is_some() && (error.is_connect() || is_repeatable(exchange)) => {
                Box::pin(self.recovered(exchange, current, Err(()))).await
            }
            // It begins a session, and its server ended before it answered.
            Err(error) if !error.is_connect() && is_repeatable(exchange) => {
                debug!(%error, "sent once more");
                let response = Box::pin(self.forward(exchange, None)).await.map_err(unreachable)?;
                self.learnt(exchange, None, response).await
            }
            Ok(response) => self.learnt(exchange, current, response).await,
            Err(error) => Err(unreachable(error)),
        }
    }

    /// The session that the request names. `initialize` begins one, and since 2026-07-28 there are none.
    async fn current(&self, exchange: &Exchange) -> Result<Option<Current>, Refusal> {
        let stateless =
            exchange.call.as_ref().is_some_and(|call| call.is_initialize() || call.era == Era::Modern);
        let mut ids = exchange.headers.get_all(&SESSION).iter();
        let (Some(id), false) = (ids.next(), stateless) else { return Ok(None) };
        if ids.next().is_some() {
            return Err(Refusal::Session);
        }
        let id = SessionId::parse(id.as_bytes()).map_err(|_| Refusal::Session)?;
        let session = self.sessions.get(id.as_str()).await?;
        let session =
            session.filter(|session| session.belongs_to(Owner::of(exchange))).ok_or(Refusal::Session)?;
        Ok(Some(Current { id, session }))
    }

    async fn forward(
        &self,
        exchange: &Exchange,
        session: Option<&Session>,
    ) -> Result<Response<Answered>, Error> {
        let made = |uri| {
            let mut headers = exchange.headers.clone();
            head::outgoing(&mut headers, &self.target, exchange.peer);
            match session.map(|session| session.server_id.as_deref()) {
                // The client has another id than the server.
                Some(Some(id)) => set_session(&mut headers, id),
                Some(None) => {}
                None => {
                    headers.remove(&SESSION);
                }
            }
            request(exchange.method.clone(), uri, headers, exchange.body.clone())
        };
        let pod = session.and_then(|session| session.pod.as_deref());
        self.reached(self.uri(&exchange.method, exchange, pod), pod, made).await
    }

    /// Sends a request, to this pod or to any. While our own server is on its way up or down it is waited for: as long as
    /// there is no connection, nothing was sent, so nothing is done twice.
    async fn reached(
        &self,
        uri: Uri,
        pod: Option<&str>,
        made: impl Fn(Uri) -> Request<Full<Bytes>>,
    ) -> Result<Response<Answered>, Error> {
        loop {
            match self.client.send(uri.clone(), &made).await {
                Ok(response) => {
                    self.reach.answered();
                    return Ok(response);
                }
                Err(error) if error.is_connect() && pod.is_none() && !self.target.remote => {
                    if !self.comes_back().await {
                        return Err(error);
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Waits a moment for a server that cannot be connected to, and says whether to try again.
    async fn comes_back(&self) -> bool {
        let missing = self.reach.missed();
        match &self.readiness {
            Some(readiness) if !readiness.serves() => {
                let patience = limits::SERVER_START_TIME.saturating_sub(missing);
                let serves = tokio::time::timeout(patience, readiness.clone().serving()).await;
                // What it needs from its pod being ready to listening counts from now.
                self.reach.begins();
                serves.is_ok_and(|serves| serves)
            }
            _ if missing < limits::SERVER_LISTEN_TIME => {
                tokio::time::sleep(limits::SERVER_PAUSE).await;
                true
            }
            _ => false,
        }
    }

    /// Both were checked: the target when it was made, the path by the parser of requests.
    fn uri(&self, method: &Method, exchange: &Exchange, pod: Option<&str>) -> Uri {
        self.target.uri(method, &exchange.path, pod).unwrap_or_default()
    }

    /// Remembers a session that begins with this answer, or forgets the one that ends with it.
    async fn learnt(
        &self,
        exchange: &Exchange,
        current: Option<Current>,
        response: Response<Answered>,
    ) -> Result<Response<Body>, Refusal> {
        if let Some(current) = &current
            && exchange.method == Method::DELETE
            && (response.status().is_success() || response.status() == StatusCode::NOT_FOUND)
        {
            // If this fails, the client may ask again, and the server then says that there is no such session.
            self.sessions.remove(current.id.as_str()).await?;
        }
        let began = response
            .headers()
            .get(&SESSION)
            .filter(|_| response.status() == StatusCode::OK && current.is_none());
        if let Some(id) = began {
            let id = SessionId::parse(id.as_bytes()).map_err(|_| Refusal::Internal)?;
            let session = Session {
                server_id: None,
                pod: self.pod(&response),
                initialize: kept_initialize(exchange),
                owner: Some(Owner::of(exchange)),
            };
            self.sessions.put(id.as_str(), session).await?;
        }
        let mut answer = passed_back(response);
        // The client's id stays what it was, whatever the server calls the session now.
        if let Some(Current { id, session: Session { server_id: Some(_), .. } }) = &current
            && answer.headers().contains_key(&SESSION)
        {
            set_session(answer.headers_mut(), id.as_str());
        }
        Ok(answer)
    }

    /// Begins the session anew, and sends the request once more. Without a way to begin it, what happened stands.
    async fn recovered(
        &self,
        exchange: &Exchange,
        current: Option<Current>,
        happened: Result<Response<Answered>, ()>,
    ) -> Result<Response<Body>, Refusal> {
        let Some(mut current) = current else { return Err(Refusal::Unreachable) };
        match self.begun_anew(exchange, &current.session).await {
            Some(session) => {
                debug!(session = ?current.id, "the server had lost the session, and has it again");
                // Where this cannot be kept, the next request does the same.
                self.sessions.change(current.id.as_str(), session.clone()).await.ok();
                current.session = session;
            }
            None => {
                // Any pod may answer from now on.
                let session = Session { pod: None, ..current.session.clone() };
                self.sessions.change(current.id.as_str(), session).await.ok();
                return match happened {
                    Ok(response) => Ok(passed_back(response)),
                    Err(()) => Err(Refusal::Unreachable),
                };
            }
        }
        let response = self.forward(exchange, Some(&current.session)).await.map_err(unreachable)?;
        self.learnt(exchange, Some(current), response).await
    }

    /// A new session at the server for one that it has lost, by the request that began the old one.
    async fn begun_anew(&self, exchange: &Exchange, lost: &Session) -> Option<Session> {
        let initialize = Bytes::copy_from_slice(lost.initialize.as_deref()?);
        let mut headers = exchange.headers.clone();
        head::outgoing(&mut headers, &self.target, exchange.peer);
        headers.remove(&SESSION);
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(header::ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        let post = |headers: HeaderMap, body: Bytes| {
            move |uri| request(Method::POST, uri, headers.clone(), body.clone())
        };
        let any = self.uri(&Method::POST, exchange, None);
        let response = self.reached(any, None, post(headers.clone(), initialize)).await.ok()?;
        let id = response.headers().get(&SESSION).filter(|_| response.status() == StatusCode::OK)?;
        let id = SessionId::parse(id.as_bytes()).ok()?;
        let pod = self.pod(&response);
        // A server may wait for this before it answers anything else.
        set_session(&mut headers, id.as_str());
        let same = self.uri(&Method::POST, exchange, pod.as_deref());
        self.client.send(same, post(headers, Bytes::from_static(INITIALIZED))).await.ok()?;
        let server_id = Some(id.as_str().into());
        Some(Session { server_id, pod, initialize: lost.initialize.clone(), owner: lost.owner })
    }

    /// The pod that answered: a Service chooses one for each connection, and only this one knows the session.
    fn pod(&self, response: &Response<Answered>) -> Option<Box<str>> {
        if self.target.remote {
            return None;
        }
        Some(response.body().peer()?.to_string().into())
    }
}

fn request(method: Method, uri: Uri, headers: HeaderMap, body: Bytes) -> Request<Full<Bytes>> {
    let mut request = Request::new(Full::new(body));
    *request.method_mut() = method;
    *request.uri_mut() = uri;
    *request.headers_mut() = headers;
    request
}

fn unreachable(error: Error) -> Refusal {
    warn!(%error, "the server cannot be reached");
    Refusal::Unreachable
}

/// Whether a request may be sent again when nobody knows whether the server has done what it asks for.
fn is_repeatable(exchange: &Exchange) -> bool {
    let method = exchange.call.as_ref().and_then(|call| call.method);
    method.is_some_and(skep_mcp::Method::is_repeatable)
}

/// Whether the server does not know a session that we know.
fn is_lost(response: &Response<Answered>, exchange: &Exchange, current: Option<&Current>) -> bool {
    response.status() == StatusCode::NOT_FOUND && current.is_some() && exchange.method != Method::DELETE
}

/// The request, if it is one that begins a session and not too large to keep.
fn kept_initialize(exchange: &Exchange) -> Option<Box<[u8]>> {
    let initialize = exchange.call.as_ref().is_some_and(Call::is_initialize);
    // A copy of its own: what came in is a part of a larger buffer.
    (initialize && exchange.body.len() <= limits::INITIALIZE).then(|| exchange.body.as_ref().into())
}

fn set_session(headers: &mut HeaderMap, id: &str) {
    if let Ok(value) = HeaderValue::from_str(id) {
        headers.insert(SESSION, value);
    }
}

fn passed_back(response: Response<Answered>) -> Response<Body> {
    let (mut parts, body) = response.into_parts();
    head::incoming(&mut parts.headers);
    parts.extensions.clear();
    Response::from_parts(parts, Body::Server(body))
}
