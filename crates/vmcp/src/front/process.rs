//! The routes of a virtual server, and how it processes a request.

use std::{net::SocketAddr, sync::Arc};

use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use hyper::body::Incoming;
use skep_gateway::{
    http::{Body, ErrorResponse, response},
    message::{self, Exchange, ParsedMessage},
    middleware::{METRICS, Telemetry, not_served},
    sessions::Records,
};
use skep_mcp::{
    Raw, Rejection, Revision, SessionId,
    header::{MCP_PROTOCOL_VERSION, MCP_SESSION_ID},
};

use tracing::debug;

use super::VirtualServer;
use crate::{
    backend::Caller,
    session::{ClientSession, Known, Record},
};

/// The path of MCP.
const MCP: &str = "/mcp";
const METHODS: HeaderValue = HeaderValue::from_static("GET, POST, DELETE");

impl VirtualServer {
    pub(super) async fn route(&self, request: Request<Incoming>, peer: SocketAddr) -> Response<Body> {
        let (path, method) = (request.uri().path(), request.method());
        if let Some(server) = self.authorization_server.as_ref().filter(|server| server.serves(path)) {
            return server.respond(request, peer.ip()).await.map(Body::Whole);
        }
        match path {
            MCP => self.mcp(request, peer).await,
            METRICS => match self.chain.telemetry().and_then(Telemetry::page) {
                Some(page) => page.respond(method),
                None => not_served(),
            },
            path if path.starts_with("/.well-known/") => self.well_known.respond(&request),
            path => match self.page(path) {
                Some(_) if !matches!(*method, Method::GET | Method::HEAD) => {
                    response::text(StatusCode::METHOD_NOT_ALLOWED, "the method must be GET\n")
                }
                Some(page) => page,
                None => response::text(StatusCode::NOT_FOUND, "no such page; MCP is at /mcp\n"),
            },
        }
    }

    async fn mcp(&self, request: Request<Incoming>, peer: SocketAddr) -> Response<Body> {
        let (head, body) = request.into_parts();
        let mut request = self.chain.observed(Exchange::new(head, peer, &self.budget));
        let response = self.process(&mut request.exchange, body).await.unwrap_or_else(|response| *response);
        request.respond(response)
    }

    async fn process(
        &self,
        exchange: &mut Exchange,
        body: Incoming,
    ) -> Result<Response<Body>, ErrorResponse> {
        if let Err(response) = self.admit(exchange).await {
            message::discard(body).await;
            return Err(response);
        }
        message::read(exchange, body, self.chain.body_limit(), &self.budget, ParsedMessage::of).await?;
        exchange.describe();
        self.chain.request(exchange).await?;
        let response = match exchange.method {
            Method::GET => self.listen(exchange).await,
            Method::DELETE => self.end_session(exchange).await,
            _ => self.message(exchange).await,
        };
        let response = response.map_err(|rejection| exchange.reject(&rejection))?;
        Ok(self.chain.filter(exchange, response, &self.budget).await)
    }

    /// Decides by the head of a request whether it is read at all.
    async fn admit(&self, exchange: &mut Exchange) -> Result<(), ErrorResponse> {
        match exchange.method {
            Method::POST if !exchange.headers.contains_key(header::CONTENT_TYPE) => {
                let message = "Content-Type must be application/json\n";
                return Err(Box::new(response::text(StatusCode::UNSUPPORTED_MEDIA_TYPE, message)));
            }
            Method::POST | Method::DELETE => {}
            Method::GET if accepts_events(&exchange.headers) => {}
            Method::GET => {
                let body = r#"{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"Accept must have text/event-stream"}}"#;
                return Err(Box::new(response::json(StatusCode::NOT_ACCEPTABLE, body)));
            }
            _ => {
                let mut rejection =
                    response::text(StatusCode::METHOD_NOT_ALLOWED, "the method must be one of Allow\n");
                rejection.headers_mut().insert(header::ALLOW, METHODS);
                return Err(Box::new(rejection));
            }
        }
        if let Some(rejection) = self.guard.rejection(&exchange.headers) {
            return Err(Box::new(rejection));
        }
        let version = exchange.headers.get(MCP_PROTOCOL_VERSION).map(HeaderValue::as_bytes);
        if version.is_some_and(|version| !version.is_empty() && Revision::named(version).is_none()) {
            let message = "MCP-Protocol-Version is not a version that is supported\n";
            return Err(Box::new(response::text(StatusCode::BAD_REQUEST, message)));
        }
        self.chain.admit(exchange).await
    }

    /// The session that a request names, if it belongs to the caller.
    pub(super) async fn session(&self, exchange: &Exchange) -> Result<Arc<ClientSession>, SessionError> {
        let Some(id) = exchange.headers.get(MCP_SESSION_ID) else { return Err(SessionError::Missing) };
        let id = SessionId::parse(id.as_bytes()).map_err(|_| SessionError::Unknown)?;
        let known = self.sessions.get(id.as_str()).map(|Known(session)| session);
        let session = match &self.records {
            None => known.ok_or(SessionError::Unknown)?,
            Some(records) => self.stored(records, id.as_str(), known, exchange).await?,
        };
        if session.owner != exchange.owner() {
            return Err(SessionError::Foreign);
        }
        Ok(session)
    }

    /// The session as all replicas see it. While Redis is unavailable, those that are known here go on.
    async fn stored(
        &self,
        records: &Records,
        id: &str,
        known: Option<Arc<ClientSession>>,
        exchange: &Exchange,
    ) -> Result<Arc<ClientSession>, SessionError> {
        let record = match records.get(id).await {
            Ok(record) => record.as_deref().and_then(Record::parse),
            Err(_) => return known.ok_or(SessionError::Unavailable),
        };
        let Some(record) = record else {
            // Another replica has ended it.
            self.sessions.remove(id);
            return Err(SessionError::Unknown);
        };
        let session = match known {
            Some(session) => session,
            None => {
                let session = self.new_session(
                    record.owner,
                    self.capabilities.declared(Raw::spelled(&record.capabilities)),
                    Some(id),
                );
                let put = self.sessions.put(id, Known(session.clone()), exchange.peer.ip());
                put.map_err(|_| SessionError::Unavailable)?;
                session
            }
        };
        session.update(record);
        Ok(session)
    }

    /// Stores what has changed of a session, for other replicas.
    pub(super) async fn store(&self, session: &ClientSession) {
        let (Some(records), Some(id)) = (&self.records, &session.links.shared) else { return };
        if records.change(id, &session.record().to_bytes()).await.is_err() {
            debug!("a session could not be stored");
        }
    }

    async fn end_session(&self, exchange: &Exchange) -> Result<Response<Body>, Rejection> {
        let session = match self.session(exchange).await {
            Ok(session) => session,
            Err(error) => return Ok(error.response()),
        };
        session.outbox.close();
        if let Some(id) = exchange.headers.get(MCP_SESSION_ID).and_then(|id| id.to_str().ok()) {
            if let Some(records) = &self.records {
                records.remove(id).await.map_err(|_| Rejection::Unavailable("session store"))?;
            }
            self.sessions.remove(id);
        }
        Ok(response::empty(StatusCode::OK))
    }

    /// For whom requests to backends are sent.
    pub(super) fn caller(&self, exchange: &Exchange) -> Caller {
        let mut headers = HeaderMap::new();
        for name in &self.passthrough {
            for value in exchange.headers.get_all(name) {
                headers.append(name, value.clone());
            }
        }
        let authorization = exchange.headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let token =
            authorization.and_then(|value| value.split_once(' ')).map(|(_, token)| token.trim().into());
        Caller { identity: exchange.identity.clone(), token, headers }
    }
}

/// Why a request has no session.
pub(super) enum SessionError {
    Missing,
    Unknown,
    Foreign,
    /// It cannot be looked up now.
    Unavailable,
}

impl SessionError {
    /// To the caller, a session of another one does not exist.
    pub(super) fn response(&self) -> Response<Body> {
        match self {
            Self::Missing => response::text(StatusCode::BAD_REQUEST, "Mcp-Session-Id is missing\n"),
            Self::Unavailable => response::error(&Rejection::Unavailable("session store"), None),
            Self::Unknown | Self::Foreign => response::error(&Rejection::Session, None),
        }
    }
}

fn accepts_events(headers: &HeaderMap) -> bool {
    let values = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|part| {
        let kind = part.split(';').next().unwrap_or_default().trim();
        kind.eq_ignore_ascii_case("text/event-stream") || kind == "*/*" || kind == "text/*"
    })
}
