//! Where requests come in.

use std::{net::SocketAddr, sync::Arc, time::Instant};

use http::{HeaderMap, Method, Request, Response, StatusCode, header};
use hyper::body::Incoming;
use serde_json::json;
use skep_config::{RunConfig, run_config::Transport};
use skep_mcp::{Era, Id, Refusal, Revision, header::MCP_PROTOCOL_VERSION};

use crate::{
    ConfigError,
    answer::{self, Refused},
    body::{self, Body, ReadError},
    call::Call,
    chain::Chain,
    exchange::Exchange,
    limits,
    sessions::Sessions,
    upstream::{HttpServer, Target},
    well_known::WellKnown,
};

/// A proxy in front of one server.
pub struct Proxy {
    chain: Chain,
    server: HttpServer,
    sessions: Arc<Sessions>,
    transport: Transport,
    stateless: bool,
    well_known: WellKnown,
}

impl Proxy {
    /// The proxy that the RunConfig describes.
    pub fn new(config: &RunConfig) -> Result<Self, ConfigError> {
        let life = session_life(config)?;
        let sessions = Arc::new(Sessions::new(life));
        let target = if config.remote_url.is_empty() {
            let host = if config.target_host.is_empty() { "127.0.0.1" } else { &config.target_host };
            Target::own(host, config.target_port)?
        } else {
            Target::remote(&config.remote_url)?
        };
        if config.transport == Transport::Stdio {
            return Err(ConfigError::new("transport: stdio is not supported by this version"));
        }
        Ok(Self {
            chain: Chain::new(config)?,
            server: HttpServer::new(target, sessions.clone())?,
            sessions,
            transport: config.transport,
            stateless: config.stateless,
            well_known: WellKnown::new(config),
        })
    }

    /// What goes on beside requests, for ever: sessions that nobody uses end.
    pub async fn housekeeping(&self) {
        self.sessions.expire().await;
    }

    /// Answers one request.
    pub(crate) async fn answer(&self, request: Request<Incoming>, peer: SocketAddr) -> Response<Body> {
        match request.uri().path() {
            "/health" => self.health(request.method()),
            path if path.starts_with("/.well-known/") => self.well_known.answer(&request),
            _ => self.mcp(request, peer).await,
        }
    }

    fn health(&self, method: &Method) -> Response<Body> {
        if method != Method::GET {
            return answer::empty(StatusCode::METHOD_NOT_ALLOWED);
        }
        let health = json!({"status": "healthy", "transport": self.transport.as_str()});
        answer::json(StatusCode::OK, health.to_string())
    }

    async fn mcp(&self, request: Request<Incoming>, peer: SocketAddr) -> Response<Body> {
        if !self.allows(request.method(), request.headers()) {
            let mut refused =
                answer::text(StatusCode::METHOD_NOT_ALLOWED, "this server is stateless: use POST\n");
            refused.headers_mut().insert(header::ALLOW, http::HeaderValue::from_static("POST, OPTIONS"));
            return refused;
        }
        let mut exchange = match self.read(request, peer).await {
            Ok(exchange) => exchange,
            Err(refused) => return *refused,
        };
        let answer = self.decided(&mut exchange).await;
        self.chain.observed(&exchange, answer)
    }

    async fn decided(&self, exchange: &mut Exchange) -> Response<Body> {
        if let Err(refused) = self.chain.request(exchange).await {
            return *refused;
        }
        match self.server.send(exchange).await {
            Ok(response) => self.chain.answer(exchange, response).await,
            Err(refusal) => *exchange.refused(&refusal),
        }
    }

    /// Since 2026-07-28 there are no sessions, so there is nothing to listen to or to end.
    fn allows(&self, method: &Method, headers: &HeaderMap) -> bool {
        let of_a_session = matches!(*method, Method::GET | Method::HEAD | Method::DELETE);
        let version = headers.get(MCP_PROTOCOL_VERSION).and_then(|value| Revision::named(value.as_bytes()));
        let modern = version.is_some_and(|revision| revision.era() == Era::Modern);
        !(of_a_session && (self.stateless || modern))
    }

    /// Reads a request to its end, and looks at its message before anybody decides anything.
    async fn read(&self, request: Request<Incoming>, peer: SocketAddr) -> Result<Exchange, Refused> {
        let started = Instant::now();
        let (parts, incoming) = request.into_parts();
        let reading = body::read(incoming, self.chain.body_limit);
        let body = match tokio::time::timeout(limits::BODY_TIME, reading).await {
            Ok(Ok(body)) => body,
            Ok(Err(ReadError::TooLarge)) => return Err(Box::new(answer::refused(&Refusal::TooLarge, None))),
            Ok(Err(ReadError::Broken)) => return Err(Box::new(answer::empty(StatusCode::BAD_REQUEST))),
            Err(_) => return Err(Box::new(answer::empty(StatusCode::REQUEST_TIMEOUT))),
        };
        let call = if parts.method == Method::POST && !body.is_empty() {
            let seen = Call::of(&parts.headers, &body);
            Some(seen.map_err(|refusal| Box::new(answer::refused(&refusal, Id::glimpsed(&body))))?)
        } else {
            None
        };
        let path =
            parts.uri.path_and_query().cloned().unwrap_or_else(|| http::uri::PathAndQuery::from_static("/"));
        Ok(Exchange {
            started,
            method: parts.method,
            path,
            headers: parts.headers,
            body,
            peer,
            call,
            identity: None,
        })
    }
}

fn session_life(config: &RunConfig) -> Result<std::time::Duration, ConfigError> {
    if config.session_ttl.is_empty() {
        return Ok(limits::SESSION_LIFE);
    }
    let life = skep_config::duration::parse(&config.session_ttl)
        .map_err(|error| ConfigError::new(format!("session_ttl: {error}")))?;
    Ok(if life.is_zero() { limits::SESSION_LIFE } else { life })
}
