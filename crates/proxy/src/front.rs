//! Where requests come in.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode, header};
use hyper::body::Incoming;
use skep_config::{
    RunConfig,
    run_config::{SessionRedis, Transport},
};
use skep_mcp::{Era, Id, Refusal, Revision, header::MCP_PROTOCOL_VERSION};
use tracing::info;

use crate::{
    ConfigError, access,
    answer::{self, Refused},
    body::{self, Body, ReadError},
    budget::Budget,
    call::Call,
    chain::Chain,
    coding,
    exchange::Exchange,
    health::{Condition, Health},
    layers::{METRICS, Telemetry, elsewhere},
    limits,
    runtime::{
        Attach, Local,
        kubernetes::{Readiness, Starting},
    },
    sessions::{Memory, Sessions},
    stdio::{REQUEST_TIMEOUT, Status, StdioServer, request_time},
    upstream::{HttpServer, Target},
    well_known::WellKnown,
};

/// A proxy in front of one server.
pub struct Proxy {
    chain: Chain,
    server: Server,
    sessions: Sessions,
    transport: Transport,
    stateless: bool,
    well_known: WellKnown,
    health: Health,
    budget: Budget,
    leaves: AtomicBool,
}

/// The server, by the way in which it is spoken to.
enum Server {
    Http(Box<HttpServer>),
    Stdio(StdioServer),
}

impl Proxy {
    /// The proxy that the RunConfig describes. A stdio server is started as a process beside the proxy.
    pub fn new(config: &RunConfig) -> Result<Self, ConfigError> {
        if config.transport == Transport::Stdio {
            let time = request_time(std::env::var(REQUEST_TIMEOUT).ok().as_deref())?;
            return Self::attached(config, Local::new(config)?, time);
        }
        Self::over_http(config, None)
    }

    /// The proxy in front of a server that is going to run in the cluster, and that may take this long to answer where
    /// it speaks over stdio: see [`request_time`].
    pub fn before(config: &RunConfig, server: &Starting, time: Duration) -> Result<Self, ConfigError> {
        let proxy = if config.transport == Transport::Stdio {
            Self::attached(config, server.attachment(), time)?
        } else {
            let config = RunConfig { target_host: server.host(), ..config.clone() };
            Self::over_http(&config, Some(server.readiness()))?
        };
        Ok(Self { health: Health::new(server.is_first()), ..proxy })
    }

    /// The proxy in front of a stdio server that runs elsewhere, and that may take this long to answer: see
    /// [`request_time`].
    pub fn attached<A: Attach + Send + Sync + 'static>(
        config: &RunConfig,
        attach: A,
        time: Duration,
    ) -> Result<Self, ConfigError> {
        if session_redis(config).is_some() {
            info!("the sessions of a stdio server are in the proxy's memory, as its process has their state");
        }
        let sessions = Arc::new(Memory::new(session_life(config)?));
        let server = Server::Stdio(StdioServer::new(config, sessions.clone(), attach, time)?);
        Self::with(config, server, Sessions::Memory(sessions))
    }

    fn over_http(config: &RunConfig, readiness: Option<Readiness>) -> Result<Self, ConfigError> {
        let target = Target::of(config)?;
        let sessions = Sessions::new(session_life(config)?, session_redis(config), &target.place())?;
        let server = HttpServer::new(config, target, sessions.clone(), readiness)?;
        let server = Server::Http(Box::new(server));
        Self::with(config, server, sessions)
    }

    fn with(config: &RunConfig, server: Server, sessions: Sessions) -> Result<Self, ConfigError> {
        Ok(Self {
            chain: Chain::new(config)?,
            server,
            sessions,
            transport: config.transport,
            stateless: config.stateless,
            well_known: WellKnown::new(config),
            health: Health::new(Arc::default()),
            budget: Budget::new(limits::BODIES),
            leaves: AtomicBool::new(false),
        })
    }

    /// Whether what the proxy needs beside its server can be used. To be asked before it serves: later on, it does without
    /// for a while, and until then a mistake would not be seen.
    pub async fn check(&self) -> Result<(), ConfigError> {
        self.sessions.check().await?;
        self.chain.check().await
    }

    /// What goes on beside requests: sessions that nobody uses end, and a stdio server is kept running, until
    /// [`serve`](crate::serve) is done.
    pub async fn housekeeping(&self) {
        match &self.server {
            Server::Http(server) => {
                tokio::select! {
                    () = self.sessions.expire() => {}
                    () = self.scraped() => {}
                    () = server.housekeeping() => {}
                }
            }
            Server::Stdio(server) => {
                tokio::select! {
                    () = self.sessions.expire() => {}
                    () = self.scraped() => {}
                    () = server.run() => {}
                }
            }
        }
    }

    /// Lets every client come by another connection next time, and so to another proxy.
    pub fn leave(&self) {
        self.leaves.store(true, Ordering::Relaxed);
    }

    pub(crate) fn leaves(&self) -> bool {
        self.leaves.load(Ordering::Relaxed)
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
            "/health" => self.health(request.method()).await,
            METRICS => self.metrics(request.method()),
            path if path.starts_with("/.well-known/") => self.well_known.answer(&request),
            _ => self.mcp(request, peer).await,
        }
    }

    fn metrics(&self, method: &Method) -> Response<Body> {
        let page = self.chain.telemetry().and_then(Telemetry::page);
        page.map_or_else(elsewhere, |page| page.answer(method))
    }

    /// Metrics on a port of their own, for as long as the proxy runs.
    async fn scraped(&self) {
        if let Some(page) = self.chain.telemetry().and_then(Telemetry::page) {
            page.serve().await;
        }
        std::future::pending().await
    }

    /// Sends the last traces and metrics.
    pub(crate) async fn flush(&self) {
        if let Some(telemetry) = self.chain.telemetry() {
            telemetry.flush().await;
        }
    }

    async fn health(&self, method: &Method) -> Response<Body> {
        let asked = Instant::now();
        let mut condition = self.server.condition().await;
        while self.health.waits(condition) && asked.elapsed() < limits::HEALTH_HOLD {
            tokio::time::sleep(limits::SERVER_PAUSE).await;
            condition = self.server.condition().await;
        }
        let transport = match &self.server {
            Server::Http(_) => self.transport.as_str(),
            Server::Stdio(server) => server.front(),
        };
        self.health.answer(method, transport, condition)
    }

    async fn mcp(&self, request: Request<Incoming>, peer: SocketAddr) -> Response<Body> {
        let methods = self.methods(request.headers());
        if !methods.split(", ").any(|method| method == request.method().as_str()) {
            let mut refused =
                answer::text(StatusCode::METHOD_NOT_ALLOWED, "the method must be one of Allow\n");
            refused.headers_mut().insert(header::ALLOW, http::HeaderValue::from_static(methods));
            return refused;
        }
        let mut exchange = match self.read(request, peer).await {
            Ok(exchange) => exchange,
            Err(refused) => return *refused,
        };
        access::noted(&exchange);
        let answer = self.decided(&mut exchange).await;
        self.chain.observed(&exchange, answer)
    }

    async fn decided(&self, exchange: &mut Exchange) -> Response<Body> {
        if let Err(refused) = self.chain.request(exchange).await {
            return *refused;
        }
        let sent = match &self.server {
            Server::Http(server) => server.send(exchange, &self.chain).await,
            Server::Stdio(server) => server.send(exchange).await,
        };
        match sent {
            Ok(response) => self.chain.answer(exchange, response, &self.budget).await,
            Err(refusal) => *exchange.refused(&refusal),
        }
    }

    /// The methods of HTTP that MCP has. Since 2026-07-28 there are no sessions, so there is nothing to listen to or to
    /// end.
    fn methods(&self, headers: &HeaderMap) -> &'static str {
        let version = headers.get(MCP_PROTOCOL_VERSION).and_then(|value| Revision::named(value.as_bytes()));
        let modern = version.is_some_and(|revision| revision.era() == Era::Modern);
        if self.stateless || modern { "POST, OPTIONS" } else { "GET, HEAD, POST, DELETE, OPTIONS" }
    }

    /// Reads a request to its end, and looks at its message before anybody decides anything.
    async fn read(&self, request: Request<Incoming>, peer: SocketAddr) -> Result<Exchange, Refused> {
        let started = Instant::now();
        let (parts, incoming) = request.into_parts();
        let reading = body::read_counted(incoming, self.chain.body_limit, &self.budget);
        let (body, share) = match tokio::time::timeout(limits::BODY_TIME, reading).await {
            Ok(Ok(body)) => body,
            Ok(Err(ReadError::TooLarge)) => return Err(Box::new(answer::refused(&Refusal::TooLarge, None))),
            Ok(Err(ReadError::Exhausted)) => {
                return Err(Box::new(answer::refused(&Refusal::Unavailable("memory"), None)));
            }
            Ok(Err(ReadError::Broken)) => return Err(Box::new(answer::empty(StatusCode::BAD_REQUEST))),
            Err(_) => return Err(Box::new(answer::empty(StatusCode::REQUEST_TIMEOUT))),
        };
        // A message that nobody looked at could be read by a server that takes it by any method.
        if !body.is_empty() && parts.method != Method::POST {
            return Err(Box::new(answer::text(StatusCode::BAD_REQUEST, "only POST has a body\n")));
        }
        let call = if body.is_empty() {
            None
        } else if !coding::is_plain_json(&parts.headers) {
            let refused = "a message must be application/json in UTF-8, and not compressed\n";
            return Err(Box::new(answer::text(StatusCode::UNSUPPORTED_MEDIA_TYPE, refused)));
        } else {
            let seen = self.server.looked_at(&parts.headers, &body);
            Some(seen.map_err(|refusal| Box::new(answer::refused(&refusal, Id::glimpsed(&body))))?)
        };
        let path =
            parts.uri.path_and_query().cloned().unwrap_or_else(|| http::uri::PathAndQuery::from_static("/"));
        Ok(Exchange {
            started,
            method: parts.method,
            path,
            headers: parts.headers,
            body,
            is_changed: false,
            _share: share,
            peer,
            call,
            identity: None,
            noted: None,
        })
    }
}

impl Server {
    /// How it is.
    async fn condition(&self) -> Condition {
        match self {
            Self::Http(server) => server.condition().await,
            Self::Stdio(server) => match server.status() {
                Status::Ready => Condition::Up,
                Status::Starting => Condition::Down("the server is starting"),
                Status::Down => Condition::Down("the server cannot be started"),
            },
        }
    }

    /// A message, with the headers that go with it where there are such.
    fn looked_at(&self, headers: &HeaderMap, body: &Bytes) -> Result<Call, Refusal> {
        match self {
            Self::Stdio(server) if server.is_http_sse() => Call::of_2024(body),
            Self::Http(server) if server.is_http_sse() => Call::of_2024(body),
            Self::Http(_) | Self::Stdio(_) => Call::of(headers, body),
        }
    }
}

fn session_redis(config: &RunConfig) -> Option<&SessionRedis> {
    config.scaling_config.as_ref()?.session_redis.as_ref()
}

fn session_life(config: &RunConfig) -> Result<std::time::Duration, ConfigError> {
    if config.session_ttl.is_empty() {
        return Ok(limits::SESSION_LIFE);
    }
    let life = skep_config::duration::parse(&config.session_ttl)
        .map_err(|error| ConfigError::new(format!("session_ttl: {error}")))?;
    Ok(if life.is_zero() { limits::SESSION_LIFE } else { life })
}
