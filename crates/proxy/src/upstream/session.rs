//! Which session a request is in, and what becomes of it: sessions begin, end, and are begun anew when the server has
//! lost them.
//!
//! A session outlives a proxy that has it in memory only where it is nobody's in particular: then another proxy asks the
//! server whether there is such a session. Where callers have names, it has to be known whose it is.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, header};
use skep_mcp::{Era, Refusal, SessionId, header::MCP_SESSION_ID};
use tracing::debug;

use super::{
    Answered, head,
    http::{HttpServer, passed_back, request, unreachable},
};
use crate::{
    body::Body,
    call::Call,
    exchange::Exchange,
    limits,
    owner::Owner,
    sessions::{Session, Sessions},
};

pub(super) const HEADER: HeaderName = HeaderName::from_static(MCP_SESSION_ID);
const INITIALIZED: &[u8] = br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// The session that a request is in.
pub(super) struct Current {
    id: SessionId,
    pub(super) session: Session,
    /// Whether it is one that we know. If not, the server may.
    known: bool,
}

impl Current {
    /// Whether neither we nor the server know it. Servers tell so by one of two numbers.
    pub(super) fn is_nobodys(&self, response: &Response<Answered>) -> bool {
        !self.known && matches!(response.status(), StatusCode::NOT_FOUND | StatusCode::BAD_REQUEST)
    }

    /// Whether the server does not know it, and we do.
    pub(super) fn is_lost(&self, response: &Response<Answered>, exchange: &Exchange) -> bool {
        self.known && response.status() == StatusCode::NOT_FOUND && exchange.method != Method::DELETE
    }
}

impl HttpServer {
    /// The session that the request names. `initialize` begins one, and since 2026-07-28 there are none.
    pub(super) async fn current(&self, exchange: &Exchange) -> Result<Option<Current>, Refusal> {
        let stateless =
            exchange.call.as_ref().is_some_and(|call| call.is_initialize() || call.era == Era::Modern);
        let mut ids = exchange.headers.get_all(&HEADER).iter();
        let (Some(id), false) = (ids.next(), stateless) else { return Ok(None) };
        if ids.next().is_some() {
            return Err(Refusal::Session);
        }
        let id = SessionId::parse(id.as_bytes()).map_err(|_| Refusal::Session)?;
        let caller = Owner::of(exchange);
        match self.sessions.get(id.as_str()).await? {
            Some(session) if session.belongs_to(caller) => Ok(Some(Current { id, session, known: true })),
            None if caller == Owner::ANYBODY && matches!(self.sessions, Sessions::Memory(_)) => {
                let session = Session { server_id: None, pod: None, initialize: None, owner: Some(caller) };
                Ok(Some(Current { id, session, known: false }))
            }
            _ => Err(Refusal::Session),
        }
    }

    /// Remembers a session that begins with this answer, or forgets the one that ends with it.
    pub(super) async fn learnt(
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
        if let Some((id, session)) = self.begun(exchange, current.as_ref(), &response)? {
            self.sessions.put(id.as_str(), session).await?;
        }
        let mut answer = passed_back(response);
        // The client's id stays what it was, whatever the server calls the session now.
        if let Some(Current { id, session: Session { server_id: Some(_), .. }, .. }) = &current
            && answer.headers().contains_key(&HEADER)
        {
            set(answer.headers_mut(), id.as_str());
        }
        Ok(answer)
    }

    /// The session that is new to us with this answer: it begins, or the server knows it since before.
    fn begun(
        &self,
        exchange: &Exchange,
        current: Option<&Current>,
        response: &Response<Answered>,
    ) -> Result<Option<(SessionId, Session)>, Refusal> {
        let id = match current {
            None if response.status() == StatusCode::OK => match response.headers().get(&HEADER) {
                Some(id) => SessionId::parse(id.as_bytes()).map_err(|_| Refusal::Internal)?,
                None => return Ok(None),
            },
            Some(current)
                if !current.known && response.status().is_success() && exchange.method != Method::DELETE =>
            {
                current.id.clone()
            }
            _ => return Ok(None),
        };
        let session = Session {
            server_id: None,
            pod: self.pod(response),
            initialize: kept_initialize(exchange),
            owner: Some(Owner::of(exchange)),
        };
        Ok(Some((id, session)))
    }

    /// Begins the session anew, and sends the request once more. Without a way to begin it, what happened stands.
    pub(super) async fn recovered(
        &self,
        exchange: &Exchange,
        mut current: Current,
        happened: Result<Response<Answered>, ()>,
    ) -> Result<Response<Body>, Refusal> {
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
        headers.remove(&HEADER);
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(header::ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        let post = |headers: HeaderMap, body: Bytes| {
            move |uri| request(Method::POST, uri, headers.clone(), body.clone())
        };
        let any = self.uri(&Method::POST, exchange, None);
        let response = self.reached(any, None, post(headers.clone(), initialize)).await.ok()?;
        let id = response.headers().get(&HEADER).filter(|_| response.status() == StatusCode::OK)?;
        let id = SessionId::parse(id.as_bytes()).ok()?;
        let pod = self.pod(&response);
        // A server may wait for this before it answers anything else.
        set(&mut headers, id.as_str());
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

/// The request, if it is one that begins a session and not too large to keep.
fn kept_initialize(exchange: &Exchange) -> Option<Box<[u8]>> {
    let initialize = exchange.call.as_ref().is_some_and(Call::is_initialize);
    // A copy of its own: what came in is a part of a larger buffer.
    (initialize && exchange.body.len() <= limits::INITIALIZE).then(|| exchange.body.as_ref().into())
}

pub(super) fn set(headers: &mut HeaderMap, id: &str) {
    if let Ok(value) = HeaderValue::from_str(id) {
        headers.insert(HEADER, value);
    }
}
