//! The session of a request: sessions start, end, and are restored when the server has lost them.
//!
//! A session outlives a proxy that has it in memory only where callers are anonymous. Another proxy then forwards the request,
//! as the server may know the session, and restores the session from the client's id if the server does not ([`restorable_id`]).
//! Where callers are authenticated, the owner of the session must be known.

use std::{net::IpAddr, sync::Arc};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri, header, uri::Authority};
use http_body_util::Full;
use skep_gateway::{
    headers::MCP_SESSION_ID,
    http::{Body, response},
    identity::Owner,
    message::{Exchange, ParsedMessage},
    middleware::Chain,
    outbound::{UpstreamBody, outgoing},
    sessions::{Session, Sessions, may_be_lost},
};
use skep_mcp::{Era, Rejection, SessionId};
use tokio::time::timeout;
use tracing::debug;

use super::{
    http::{HttpServer, client_response, request, unreachable},
    restorable_id::{RestorableId, restorable_id},
};
use crate::limits;

const PING: &[u8] = br#"{"jsonrpc":"2.0","id":"skep-ping","method":"ping"}"#;
const INITIALIZED: &[u8] = br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// The session that a request is in.
pub(super) struct Current {
    /// The client's id.
    id: SessionId,
    /// How much of it is the key of the session in the store: the id that the server gave it when it started.
    key: usize,
    pub(super) session: Session,
    /// Whether the proxy knows it. If not, the server may.
    known: bool,
    /// Whether the client's id carries its `initialize`.
    restorable: bool,
}

impl Current {
    fn key(&self) -> &str {
        &self.id.as_str()[..self.key]
    }

    /// The id for the server, if it is not the client's.
    pub(super) fn other_id(&self) -> Option<&str> {
        let id = self.session.server_id.as_deref().unwrap_or(self.key());
        (id != self.id.as_str()).then_some(id)
    }

    /// Whether the proxy can start it again at the server.
    pub(super) fn may_be_restored(&self) -> bool {
        self.known || self.restorable
    }

    /// Whether the proxy does not know a session that this response, to the request to end it, says the server does not know either.
    pub(super) fn is_unknown(&self, response: &Response<UpstreamBody>) -> bool {
        !self.known && may_be_lost(response.status())
    }

    /// The `initialize` that the client's id carries.
    fn carried(&self) -> Option<Bytes> {
        RestorableId::split(self.id.as_str()).filter(|_| self.restorable)?.initialize()
    }
}

impl HttpServer {
    /// The session that the request names. `initialize` starts one, and since 2026-07-28 there are none.
    pub(super) async fn current(&self, exchange: &Exchange) -> Result<Option<Current>, Rejection> {
        let stateless = exchange
            .message
            .as_ref()
            .is_some_and(|message| message.is_initialize() || message.era == Era::Modern);
        let mut ids = exchange.headers.get_all(&MCP_SESSION_ID).iter();
        let (Some(id), false) = (ids.next(), stateless) else { return Ok(None) };
        if ids.next().is_some() {
            return Err(Rejection::Session);
        }
        let id = SessionId::parse(id.as_bytes()).map_err(|_| Rejection::Session)?;
        let caller = exchange.owner();
        let known = |id: SessionId, key: usize, session: Session, restorable: bool| {
            let current = Current { id, key, session, known: true, restorable };
            if current.session.belongs_to(caller) { Ok(Some(current)) } else { Err(Rejection::Session) }
        };
        if !self.is_shareable(caller) {
            let session = self.sessions.get(id.as_str()).await?.ok_or(Rejection::Session)?;
            let key = id.as_str().len();
            return known(id, key, session, false);
        }
        if let Some(parts) = RestorableId::split(id.as_str()) {
            let (key, is_plain) = (parts.server_id.len(), parts.is_plain());
            if let Some(session) = self.sessions.get(parts.server_id).await? {
                return known(id, key, session, !is_plain);
            }
            let initialize = parts.initialize().and_then(|body| exchange.initialize(body).ok());
            if is_plain || initialize.is_some() {
                if self.ended.contains(parts.server_id) {
                    return Err(Rejection::Session);
                }
                return Ok(Some(unknown(id, key, caller, !is_plain)));
            }
        }
        let key = id.as_str().len();
        match self.sessions.get(id.as_str()).await? {
            Some(session) => known(id, key, session, false),
            None => Ok(Some(unknown(id, key, caller, false))),
        }
    }

    /// Whether a session of this caller may be used through another proxy, although it is in this proxy's memory.
    fn is_shareable(&self, caller: Owner) -> bool {
        caller == Owner::ANONYMOUS && matches!(self.sessions, Sessions::Memory(_))
    }

    /// Remembers a session that starts with this response, or forgets the one that ends with it.
    pub(super) async fn record(
        &self,
        exchange: &Exchange,
        current: Option<Current>,
        response: Response<UpstreamBody>,
    ) -> Result<Response<Body>, Rejection> {
        if let Some(current) = &current
            && exchange.method == Method::DELETE
            && (response.status().is_success() || response.status() == StatusCode::NOT_FOUND)
        {
            self.end(current, exchange.peer.ip()).await?;
        }
        let id = match current {
            None => self.record_start(exchange, &response).await?,
            Some(current) => {
                if !current.known && response.status().is_success() && exchange.method != Method::DELETE {
                    let session = self.session(exchange, &response);
                    self.sessions.put(current.key(), session, exchange.peer.ip()).await?;
                }
                // The client's id stays what it was, also where the server has another.
                current.other_id().is_some().then_some(current.id)
            }
        };
        let mut answer = client_response(response);
        if let Some(id) = id
            && answer.headers().contains_key(&MCP_SESSION_ID)
        {
            set(answer.headers_mut(), id.as_str());
        }
        Ok(answer)
    }

    /// Remembers a session that starts with this response, and returns the id for the client.
    async fn record_start(
        &self,
        exchange: &Exchange,
        response: &Response<UpstreamBody>,
    ) -> Result<Option<SessionId>, Rejection> {
        let id = response.headers().get(&MCP_SESSION_ID).filter(|_| response.status() == StatusCode::OK);
        let Some(id) = id else { return Ok(None) };
        let id = SessionId::parse(id.as_bytes()).map_err(|_| Rejection::Internal)?;
        let mut session = self.session(exchange, response);
        let mut client_id = id.clone();
        if self.is_shareable(exchange.owner())
            && !exchange.is_changed
            && let Some(initialize) = &session.initialize
        {
            client_id = restorable_id(&id, initialize);
            if RestorableId::split(client_id.as_str()).is_some_and(|parts| !parts.is_plain()) {
                session.initialize = None;
            }
            self.ended.remove(id.as_str());
        }
        self.sessions.put(id.as_str(), session, exchange.peer.ip()).await?;
        Ok((client_id != id).then_some(client_id))
    }

    /// A session that the proxy learns of with this response: it starts, or the server knew it before.
    fn session(&self, exchange: &Exchange, response: &Response<UpstreamBody>) -> Session {
        Session {
            server_id: None,
            pod: self.pod(response),
            initialize: stored_initialize(exchange),
            owner: Some(exchange.owner()),
        }
    }

    /// Forgets a session that its client has ended. If this fails, the client may retry, and the server then responds
    /// that there is no such session.
    pub(super) async fn end(&self, current: &Current, peer: IpAddr) -> Result<(), Rejection> {
        if current.restorable {
            self.ended.insert(current.key(), peer);
        }
        Ok(self.sessions.remove(current.key()).await?)
    }

    /// Restores the session, and sends the request once more. Where that is impossible, the first result is returned.
    pub(super) async fn restore(
        &self,
        exchange: &Exchange,
        chain: &Chain,
        mut current: Current,
        first: Result<Response<UpstreamBody>, ()>,
    ) -> Result<Response<Body>, Rejection> {
        // Of all requests that notice the loss, one starts the session again.
        let turn = self.turns.take(current.key().into()).await;
        let restored = match self.sessions.get(current.key()).await? {
            // A server can give the id of a session that has ended to another caller.
            Some(session) if !session.belongs_to(exchange.owner()) => return Err(Rejection::Session),
            Some(session) if !current.known || session != current.session => Some(session),
            _ => self.start_again(exchange, chain, &current).await,
        };
        match restored {
            Some(session) => {
                debug!(session = ?current.id, "session restored: the server had lost it");
                if current.known {
                    // Where this cannot be stored, the next request does the same.
                    self.sessions.change(current.key(), session.clone()).await.ok();
                } else if !self.ended.contains(current.key()) {
                    self.sessions.put(current.key(), session.clone(), exchange.peer.ip()).await?;
                }
                current.known = true;
                current.session = session;
            }
            None => {
                // Any pod may respond from now on.
                let session = Session { pod: None, ..current.session.clone() };
                self.sessions.change(current.key(), session).await.ok();
                return match first {
                    Ok(_) if !current.known => Err(Rejection::Session),
                    Ok(response) => self.record(exchange, Some(current), response).await,
                    Err(()) => Err(Rejection::Unreachable),
                };
            }
        }
        drop(turn);
        let response = self.forward(exchange, Some(&current)).await.map_err(unreachable)?;
        self.record(exchange, Some(current), response).await
    }

    /// A new session at the server for one that it has lost.
    async fn start_again(&self, exchange: &Exchange, chain: &Chain, lost: &Current) -> Option<Session> {
        match &lost.session.initialize {
            // It has passed through the middlewares when it was received.
            Some(initialize) => {
                let initialize = Bytes::copy_from_slice(initialize);
                self.initialize(exchange, initialize, lost).await.0
            }
            // It comes with this request, so no middleware has seen it.
            None => {
                let mut start = chain.observed(exchange.initialize(lost.carried()?).ok()?);
                let admitted = match chain.admit(&mut start.exchange).await {
                    // It calls no tool.
                    Ok(()) => chain.request(&mut start.exchange, None).await,
                    rejected => rejected,
                };
                let (session, response) = match admitted {
                    Ok(()) => {
                        let body = start.exchange.body.clone();
                        self.initialize(&start.exchange, body, lost).await
                    }
                    Err(rejected) => (None, *rejected),
                };
                drop(start.respond(response));
                session
            }
        }
    }

    /// Starts a session by this `initialize`, with the server's response to it.
    async fn initialize(
        &self,
        exchange: &Exchange,
        initialize: Bytes,
        lost: &Current,
    ) -> (Option<Session>, Response<Body>) {
        let failed = || (None, response::empty(StatusCode::BAD_GATEWAY));
        let any = self.uri(&Method::POST, exchange, None);
        let Ok(start) = self.own_request(exchange, None, initialize) else { return failed() };
        let start = || self.send_when_available(&any, None, &start);
        let Ok(response) = self.repeatedly(start).await else { return failed() };
        let id = response.headers().get(&MCP_SESSION_ID).filter(|_| response.status() == StatusCode::OK);
        let id = id.and_then(|id| SessionId::parse(id.as_bytes()).ok());
        let pod = self.pod(&response);
        let answer = client_response(response);
        let Some(id) = id else { return (None, answer) };
        // A server may wait for this before it responds to anything else.
        let same = self.uri(&Method::POST, exchange, pod.as_deref());
        let initialized = self.own_request(exchange, Some(id.as_str()), Bytes::from_static(INITIALIZED));
        let Ok(initialized) = initialized else { return (None, answer) };
        if self.client.send(&same, initialized).await.is_err() {
            return (None, answer);
        }
        let server_id = Some(id.as_str().into());
        let Session { initialize, owner, .. } = &lost.session;
        (Some(Session { server_id, pod, initialize: initialize.clone(), owner: *owner }), answer)
    }

    /// The status of the response to a ping in this session, if there is one.
    pub(super) async fn ping(&self, exchange: &Exchange, current: &Current) -> Option<StatusCode> {
        let id = current.other_id().unwrap_or(current.id.as_str());
        let ping = self.own_request(exchange, Some(id), Bytes::from_static(PING)).ok()?;
        let uri = self.uri(&Method::POST, exchange, current.session.pod.as_deref());
        let sent = timeout(limits::HEALTH_TIME, self.client.send(&uri, ping)).await;
        sent.ok()?.ok().map(|response| response.status())
    }

    /// A message of the proxy itself, in the name of this caller. A signature is valid for one method and one body.
    fn own_request(
        &self,
        exchange: &Exchange,
        session: Option<&str>,
        body: Bytes,
    ) -> Result<impl Fn(Uri) -> Request<Full<Bytes>>, Rejection> {
        let mut headers = outgoing(&exchange.headers, &self.target, exchange.peer);
        headers.remove(&MCP_SESSION_ID);
        session.into_iter().for_each(|id| set(&mut headers, id));
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(header::ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        if let Some(signer) = &exchange.caller.signer {
            signer.sign((&Method::POST, &exchange.path), &mut headers, &body)?;
        }
        Ok(move |uri| request(Method::POST, uri, headers.clone(), body.clone()))
    }

    /// The pod that responded: a Service chooses one for each connection, and only this one knows the session.
    fn pod(&self, response: &Response<UpstreamBody>) -> Option<Arc<Authority>> {
        if self.target.remote {
            return None;
        }
        response.body().address().cloned()
    }
}

/// A session that the proxy does not know, and that the server may know.
fn unknown(id: SessionId, key: usize, caller: Owner, restorable: bool) -> Current {
    let session = Session { server_id: None, pod: None, initialize: None, owner: Some(caller) };
    Current { id, key, session, known: false, restorable }
}

/// The request, if it is one that starts a session and not too large to store.
pub(crate) fn stored_initialize(exchange: &Exchange) -> Option<Box<[u8]>> {
    let initialize = exchange.message.as_ref().is_some_and(ParsedMessage::is_initialize);
    // A copy: the body is a part of a larger buffer.
    (initialize && exchange.body.len() <= limits::INITIALIZE).then(|| exchange.body.as_ref().into())
}

pub(super) fn set(headers: &mut HeaderMap, id: &str) {
    if let Ok(value) = HeaderValue::from_str(id) {
        headers.insert(&MCP_SESSION_ID, value);
    }
}
