//! The proxy of a RunConfig.

use std::{sync::Arc, time::Duration};

use skep_config::{
    RunConfig,
    run_config::{SessionRedis, Transport},
};
use skep_gateway::{
    body::Budget,
    endpoint::{Endpoint, Extras, Parts},
    http::{Service, WellKnown},
    identity::Identity,
    middleware::{Chain, ChainContext},
    outbound::Target,
    sessions::{Memory, Sessions},
};
use tokio::sync::watch;
use tracing::info;

use crate::{
    ConfigError,
    health::Health,
    limits,
    middlewares::middlewares,
    runtime::{
        Attach, Local,
        kubernetes::{Readiness, Starting},
    },
    server::{Connection, Server},
    stdio::{REQUEST_TIMEOUT, StdioServer, request_time},
    upstream::HttpServer,
};

/// A RunConfig, with the parts that the program adds.
#[derive(Clone)]
pub struct Configured<'a> {
    /// The RunConfig.
    pub config: &'a RunConfig,
    /// The parts that the program adds. A RunConfig that describes an authorization server needs it among them.
    pub extras: Extras,
}

impl<'a> From<&'a RunConfig> for Configured<'a> {
    fn from(config: &'a RunConfig) -> Self {
        Self { config, extras: Extras::default() }
    }
}

/// A proxy in front of one server.
#[derive(Clone)]
pub struct Proxy(Arc<Endpoint<Server>>);

impl Proxy {
    /// The proxy that the RunConfig describes. A stdio server is started as a process next to the proxy.
    pub fn new<'a>(configured: impl Into<Configured<'a>>) -> Result<Self, ConfigError> {
        let configured = configured.into();
        if configured.config.transport == Transport::Stdio {
            let time = request_time(std::env::var(REQUEST_TIMEOUT).ok().as_deref())?;
            let local = Local::new(configured.config)?;
            return Self::with_attached(configured, local, time);
        }
        Self::over_http(configured, None, Health::new(Arc::default()))
    }

    /// The proxy in front of a server that is going to run in the cluster. `time` is the timeout of requests to a
    /// stdio server: see [`request_time`].
    pub fn in_cluster<'a>(
        configured: impl Into<Configured<'a>>,
        server: &Starting,
        time: Duration,
    ) -> Result<Self, ConfigError> {
        let Configured { config, extras } = configured.into();
        let health = Health::new(server.is_first());
        if config.transport == Transport::Stdio {
            return Self::over_stdio(Configured { config, extras }, server.attachment(), time, health);
        }
        let config = &RunConfig { target_host: server.host(), ..config.clone() };
        Self::over_http(Configured { config, extras }, Some(server.readiness()), health)
    }

    /// The proxy in front of a stdio server that runs elsewhere. `time` is the timeout of requests to it: see
    /// [`request_time`].
    pub fn with_attached<'a, A: Attach + Send + Sync + 'static>(
        configured: impl Into<Configured<'a>>,
        attach: A,
        time: Duration,
    ) -> Result<Self, ConfigError> {
        Self::over_stdio(configured.into(), attach, time, Health::new(Arc::default()))
    }

    fn over_stdio<A: Attach + Send + Sync + 'static>(
        configured: Configured<'_>,
        attach: A,
        time: Duration,
        health: Health,
    ) -> Result<Self, ConfigError> {
        let config = configured.config;
        if session_redis(config).is_some() {
            info!(
                "session storage in Redis is ignored for a stdio server: its process has the state of the sessions"
            );
        }
        let sessions = Arc::new(Memory::new(session_life(config)?));
        let connection = Connection::Stdio(StdioServer::new(config, sessions.clone(), attach, time)?);
        Self::with(configured, connection, Sessions::Memory(sessions), health)
    }

    fn over_http(
        configured: Configured<'_>,
        readiness: Option<Readiness>,
        health: Health,
    ) -> Result<Self, ConfigError> {
        let config = configured.config;
        let target = target(config)?;
        let sessions = Sessions::new(session_life(config)?, session_redis(config), &target.place())?;
        let server = HttpServer::new(config, target, sessions.clone(), readiness)?;
        Self::with(configured, Connection::Http(Box::new(server)), sessions, health)
    }

    fn with(
        configured: Configured<'_>,
        connection: Connection,
        sessions: Sessions,
        health: Health,
    ) -> Result<Self, ConfigError> {
        let Configured { config, extras } = configured;
        if config.embedded_auth_server_config.is_some() && extras.authorization_server.is_none() {
            let message =
                "embedded_auth_server_config: the program has not started this authorization server";
            return Err(ConfigError::new(message));
        }
        let context =
            ChainContext { extras: extras.clone(), sessions: Some(sessions.clone()), ..context(config) };
        let middlewares = middlewares(config)?;
        let (chain, budget) = (Arc::new(Chain::new(&middlewares, &context)?), Budget::new(limits::BODIES));
        let server = Server {
            connection,
            chain: chain.clone(),
            budget: budget.clone(),
            sessions,
            health,
            transport: config.transport,
            stateless: config.stateless,
        };
        let parts = Parts {
            chain,
            budget,
            well_known: WellKnown::new(&middlewares, &config.name),
            trusts_proxy_headers: config.trust_proxy_headers,
            extras,
        };
        Ok(Self(Arc::new(Endpoint::new(parts, server))))
    }

    /// The endpoint, for a listener to serve.
    pub fn endpoint(&self) -> Arc<impl Service + use<>> {
        self.0.clone()
    }

    pub(crate) fn server(&self) -> &Server {
        self.0.upstream()
    }

    /// Checks that everything that the proxy needs besides its server is available. To be called before it serves: later
    /// on, it tolerates outages, and a mistake in the configuration would look like one.
    pub async fn check(&self) -> Result<(), ConfigError> {
        self.server().sessions.check().await?;
        self.server().chain.check().await
    }

    /// Whether the keys of the issuer are there, if callers need tokens of one. The error is why no caller can be
    /// authenticated.
    pub(crate) async fn check_issuer(&self) -> Option<Result<(), String>> {
        self.server().chain.check_issuer().await
    }

    /// Makes every client use another connection for its next request, and so another proxy.
    pub fn drain(&self) {
        self.0.drain();
    }

    /// Whether the proxy is [draining](Self::drain).
    pub(crate) fn is_draining(&self) -> bool {
        self.0.is_draining()
    }

    /// Counts how often the server has announced other tools. One behind HTTP does so to clients that listen.
    pub(crate) fn tool_changes(&self) -> watch::Receiver<u64> {
        self.server().tool_changes()
    }
}

/// The facts about the proxy that middlewares need.
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
        extras: Extras::default(),
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
        let size = size(|proxy: &'static Endpoint<Server>, request, peer| {
            skep_gateway::http::respond(proxy, request, peer)
        });
        assert!(size <= 5 << 10, "{size} bytes");
    }
}
