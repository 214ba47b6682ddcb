//! Where requests come in.

use std::{
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
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
    runtime::{Attach, Local},
    sessions::Sessions,
    stdio::{REQUEST_TIMEOUT, Status, StdioServer, request_time},
    upstream::{HttpServer, Target},
    well_known::WellKnown,
};

/// A proxy in front of one server.
pub struct Proxy {
    chain: Chain,
    server: Server,
    sessions: Arc<Sessions>,
    transport: Transport,
    stateless: bool,
    well_known: WellKnown,
}

/// The server, by the way in which it is spoken to.
enum Server {
    Http(HttpServer),
    Stdio(StdioServer),
}

impl Proxy {
    /// The proxy that the RunConfig describes. A stdio server is started as a process beside the proxy.
    pub fn new(config: &RunConfig) -> Result<Self, ConfigError> {
        if config.transport == Transport::Stdio {
            let time = request_time(std::env::var(REQUEST_TIMEOUT).ok().as_deref())?;
            return Self::attached(config, Local::new(config)?, time);
        }
        let sessions = Arc::new(Sessions::new(session_life(config)?));
        let target = if config.remote_url.is_empty() {
            let host = if config.target_host.is_empty() { "127.0.0.1" } else { &config.target_host };
            Target::own(host, config.target_port)?
        } else {
            Target::remote(&config.remote_url)?
        };
        let server = Server::Http(HttpServer::new(target, sessions.clone())?);
        Self::with(config, server, sessions)
    }

    /// The proxy in front of a stdio server that runs elsewhere, and that may take this long to answer: see
    /// [`request_time`].
    pub fn attached<A: Attach + Send + Sync + 'static>(
        config: &RunConfig,
        attach: A,
        time: Duration,
    ) -> Result<Self, ConfigError> {
        let sessions = Arc::new(Sessions::new(session_life(config)?));
        let server = Server::Stdio(StdioServer::new(config, sessions.clone(), attach, time)?);
        Self::with(config, server, sessions)
    }

    fn with(config: &RunConfig, server: Server, sessions: Arc<Sessions>) -> Result<Self, ConfigError> {
        Ok(Self {
            chain: Chain::new(config)?,
            server,
            sessions,
            transport: config.transport,
            stateless: config.stateless,
            well_known: WellKnown::new(config),
        })
    }

    /// What goes on beside requests: sessions that nobody uses end, and a stdio server is kept running, until
    /// [`serve`](crate::serve) is done.
    pub async fn housekeeping(&self) {
        match &self.server {
            Server::Http(_) => self.sessions.expire().await,
            Server::Stdio(server) => {
                tokio::select! {
                    () = self.sessions.expire() => {}
                    () = server.run() => {}
                }
            }
        }
    }

    /// Ends the streams of clients that only listen. What is on its way goes on.
    pub(crate) fn close(&self) {
        if let Server::Stdio(server) = &self.server {
            server.close();
        }
    }

    /// Ends a stdio server, and says whether there is one to wait for.
    pub(crate) fn stop(&self) -> bool {
        if let Server::Stdio(server) = &self.server {
            server.stop();
        }
        matches!(self.server, Server::Stdio(_))
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
        let now = jiff::Timestamp::now().to_string();
        let health = match &self.server {
            Server::Http(_) => {
                json!({"status": "healthy", "timestamp": now, "transport": self.transport.as_str()})
            }
            Server::Stdio(server) => {
                let error = match server.status() {
                    Status::Ready => None,
                    Status::Starting => Some("the server is starting"),
                    Status::Down => Some("the server cannot be started"),
                };
                let status = if error.is_none() { "healthy" } else { "degraded" };
                let mut mcp = json!({"available": error.is_none(), "last_checked": now});
                if let Some(error) = error {
                    mcp["error"] = error.into();
                }
                json!({"status": status, "timestamp": now, "transport": server.front(), "mcp": mcp})
            }
        };
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
        let sent = match &self.server {
            Server::Http(server) => server.send(exchange).await,
            Server::Stdio(server) => server.send(exchange).await,
        };
        match sent {
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
            let seen = self.server.looked_at(&parts.headers, &body);
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

impl Server {
    /// A message, with the headers that go with it where there are such.
    fn looked_at(&self, headers: &HeaderMap, body: &Bytes) -> Result<Call, Refusal> {
        match self {
            Self::Stdio(server) if server.is_http_sse() => Call::of_2024(body),
            Self::Http(_) | Self::Stdio(_) => Call::of(headers, body),
        }
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
