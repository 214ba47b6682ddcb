//! The proxy of a RunConfig.

use std::{
    future::Future,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use http::{Request, Response};
use hyper::body::Incoming;
use skep_config::{
    RunConfig,
    run_config::{SessionRedis, Transport},
};
use skep_gateway::{
    AdministrationPage, AuthorizationServer,
    body::Budget,
    http::{Body, Service, WellKnown},
    identity::Identity,
    middleware::{CallLog, CallsPage, Chain, ChainContext, Telemetry},
    outbound::Target,
    sessions::{Memory, Sessions},
};
use tokio::sync::watch;
use tracing::info;

use super::{middlewares::middlewares, server::Server};
use crate::{
    ConfigError,
    health::Health,
    limits,
    runtime::{
        Attach, Local,
        kubernetes::{Readiness, Starting},
    },
    stdio::{REQUEST_TIMEOUT, StdioServer, request_time},
    upstream::HttpServer,
};

/// What a proxy is made from.
#[derive(Clone)]
pub struct Configured<'a> {
    /// The RunConfig.
    pub config: &'a RunConfig,
    /// The authorization server that the RunConfig describes, if it does.
    pub authorization_server: Option<Arc<dyn AuthorizationServer>>,
}

impl<'a> From<&'a RunConfig> for Configured<'a> {
    fn from(config: &'a RunConfig) -> Self {
        Self { config, authorization_server: None }
    }
}

/// A proxy in front of one server.
pub struct Proxy {
    pub(super) chain: Chain,
    pub(super) server: Server,
    sessions: Sessions,
    pub(super) authorization_server: Option<Arc<dyn AuthorizationServer>>,
    /// Whether the proxy in front is trusted to name the addresses of clients.
    pub(super) trusts_proxy_headers: bool,
    pub(super) transport: Transport,
    pub(super) stateless: bool,
    pub(super) well_known: WellKnown,
    pub(super) health: Health,
    pub(super) calls_page: Option<Box<CallsPage>>,
    pub(super) administration: Option<Box<AdministrationPage>>,
    pub(super) budget: Budget,
    is_leaving: AtomicBool,
}

impl Proxy {
    /// The proxy that the RunConfig describes. A stdio server is started as a process beside the proxy.
    pub fn new<'a>(configured: impl Into<Configured<'a>>) -> Result<Self, ConfigError> {
        let configured = configured.into();
        if configured.config.transport == Transport::Stdio {
            let time = request_time(std::env::var(REQUEST_TIMEOUT).ok().as_deref())?;
            let local = Local::new(configured.config)?;
            return Self::with_attached(configured, local, time);
        }
        Self::over_http(configured, None)
    }

    /// The proxy in front of a server that is going to run in the cluster. `time` is the timeout of requests to a
    /// stdio server: see [`request_time`].
    pub fn before<'a>(
        configured: impl Into<Configured<'a>>,
        server: &Starting,
        time: Duration,
    ) -> Result<Self, ConfigError> {
        let Configured { config, authorization_server } = configured.into();
        let proxy = if config.transport == Transport::Stdio {
            Self::with_attached(Configured { config, authorization_server }, server.attachment(), time)?
        } else {
            let config = &RunConfig { target_host: server.host(), ..config.clone() };
            Self::over_http(Configured { config, authorization_server }, Some(server.readiness()))?
        };
        Ok(Self { health: Health::new(server.is_first()), ..proxy })
    }

    /// The proxy in front of a stdio server that runs elsewhere. `time` is the timeout of requests to it: see
    /// [`request_time`].
    pub fn with_attached<'a, A: Attach + Send + Sync + 'static>(
        configured: impl Into<Configured<'a>>,
        attach: A,
        time: Duration,
    ) -> Result<Self, ConfigError> {
        let configured = configured.into();
        let config = configured.config;
        if session_redis(config).is_some() {
            info!(
                "session storage in Redis is ignored for a stdio server: its process has the state of the sessions"
            );
        }
        let sessions = Arc::new(Memory::new(session_life(config)?));
        let server = Server::Stdio(StdioServer::new(config, sessions.clone(), attach, time)?);
        Self::with(configured, server, Sessions::Memory(sessions))
    }

    fn over_http(configured: Configured<'_>, readiness: Option<Readiness>) -> Result<Self, ConfigError> {
        let config = configured.config;
        let target = target(config)?;
        let sessions = Sessions::new(session_life(config)?, session_redis(config), &target.place())?;
        let server = HttpServer::new(config, target, sessions.clone(), readiness)?;
        let server = Server::Http(Box::new(server));
        Self::with(configured, server, sessions)
    }

    fn with(configured: Configured<'_>, server: Server, sessions: Sessions) -> Result<Self, ConfigError> {
        let Configured { config, authorization_server } = configured;
        if config.embedded_auth_server_config.is_some() && authorization_server.is_none() {
            let message =
                "embedded_auth_server_config: the program has not started this authorization server";
            return Err(ConfigError::new(message));
        }
        let context = ChainContext {
            authorization_server: authorization_server.clone(),
            sessions: Some(sessions.clone()),
            ..context(config)
        };
        let middlewares = middlewares(config)?;
        Ok(Self {
            chain: Chain::new(&middlewares, &context)?,
            server,
            sessions,
            authorization_server,
            trusts_proxy_headers: config.trust_proxy_headers,
            transport: config.transport,
            stateless: config.stateless,
            well_known: WellKnown::new(&middlewares, &config.name),
            health: Health::new(Arc::default()),
            calls_page: None,
            administration: None,
            budget: Budget::new(limits::BODIES),
            is_leaving: AtomicBool::new(false),
        })
    }

    /// The same with a log of calls, which shows the connections of users as well.
    pub fn with_call_log(mut self, log: Arc<CallLog>) -> Self {
        if let Some(server) = &self.authorization_server {
            log.set_connection_source(server.clone());
        }
        self.chain.record_calls(log);
        self
    }

    /// The same with a page that shows its calls.
    pub fn with_calls_page(self, page: CallsPage) -> Self {
        let log = page.log().clone();
        Self { calls_page: Some(Box::new(page)), ..self }.with_call_log(log)
    }

    /// The same with endpoints for administrators of its authorization server.
    pub fn with_administration(self, page: AdministrationPage) -> Self {
        Self { administration: Some(Box::new(page)), ..self }
    }

    /// Checks that what the proxy needs beside its server is available. To be called before it serves: later on, it
    /// tolerates outages, and a mistake in the configuration would look like one.
    pub async fn check(&self) -> Result<(), ConfigError> {
        self.sessions.check().await?;
        self.chain.check().await
    }

    /// Whether the keys of the issuer are there, if callers need tokens of one. The error is why no caller can be authenticated.
    pub(crate) async fn check_issuer(&self) -> Option<Result<(), String>> {
        self.chain.check_issuer().await
    }

    /// Makes every client use another connection for its next request, and so another proxy.
    pub fn leave(&self) {
        self.is_leaving.store(true, Ordering::Relaxed);
    }

    /// Counts how often the server has announced other tools. One behind HTTP does so to clients that listen.
    pub(crate) fn tool_changes(&self) -> watch::Receiver<u64> {
        self.server.tool_changes()
    }

    /// Serves metrics on their own port, for as long as the proxy runs.
    async fn serve_metrics(&self) {
        if let Some(page) = self.chain.telemetry().and_then(Telemetry::page) {
            page.serve().await;
        }
        std::future::pending().await
    }
}

impl Service for Proxy {
    /// Not an async function, which would store the request twice.
    fn respond(
        &self,
        request: Request<Incoming>,
        peer: SocketAddr,
    ) -> impl Future<Output = Response<Body>> + Send {
        self.route(request, peer)
    }

    fn is_leaving(&self) -> bool {
        self.is_leaving.load(Ordering::Relaxed)
    }

    /// Expires idle sessions, and keeps a stdio server running, until it is stopped.
    async fn run(&self) {
        tokio::select! {
            () = self.sessions.expire() => {}
            () = self.serve_metrics() => {}
            () = self.server.run() => {}
        }
    }

    fn close_streams(&self) {
        if let Some(page) = &self.calls_page {
            page.close();
        }
        match &self.server {
            Server::Http(server) => server.close_streams(),
            Server::Stdio(server) => server.close(),
        }
    }

    fn stop(&self) -> bool {
        if let Server::Stdio(server) = &self.server {
            server.stop();
        }
        matches!(self.server, Server::Stdio(_))
    }

    async fn flush(&self) {
        self.chain.flush().await;
    }
}

/// What the middlewares need to know of the proxy.
pub(crate) fn context(config: &RunConfig) -> ChainContext<'_> {
    ChainContext {
        server: &config.name,
        host: &config.host,
        remote_url: &config.remote_url,
        transport: config.transport,
        trusts_proxy_headers: config.trust_proxy_headers,
        is_virtual: false,
        own_tools: &[],
        unauthenticated: Identity::local(),
        authorization_server: None,
        sessions: None,
    }
}

/// The address of the server.
fn target(config: &RunConfig) -> Result<Target, ConfigError> {
    if config.remote_url.is_empty() {
        let host = if config.target_host.is_empty() { "127.0.0.1" } else { &config.target_host };
        Target::own(host, config.target_port)
    } else {
        Target::remote(&config.remote_url, config.transport)
    }
}

fn session_redis(config: &RunConfig) -> Option<&SessionRedis> {
    config.scaling_config.as_ref()?.session_redis.as_ref()
}

fn session_life(config: &RunConfig) -> Result<Duration, ConfigError> {
    if config.session_ttl.is_empty() {
        return Ok(limits::SESSION_LIFE);
    }
    let life = skep_config::duration::parse(&config.session_ttl)
        .map_err(|error| ConfigError::new(format!("session_ttl: {error}")))?;
    Ok(if life.is_zero() { limits::SESSION_LIFE } else { life })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// It is moved into its connection once for each request.
    #[test]
    fn the_future_of_a_response_is_small() {
        fn size<A, B, C, R>(_: impl FnOnce(A, B, C) -> R) -> usize {
            std::mem::size_of::<R>()
        }
        let size =
            size(|proxy: &'static Proxy, request, peer| skep_gateway::http::respond(proxy, request, peer));
        assert!(size <= 5 << 10, "{size} bytes");
    }
}
