//! The stdio server behind the proxy.

use std::{sync::Arc, time::Duration};

use futures::{FutureExt, future::BoxFuture};
use http::Response;
use skep_config::{
    RunConfig, duration,
    run_config::{ProxyMode, Transport},
};
use skep_gateway::{http::Body, message::Exchange, sessions::Memory};
use skep_mcp::Rejection;
use tokio::sync::watch;

use super::{
    Status,
    bridge::Bridge,
    inflight::SessionKey,
    link,
    member::{Abilities, Member},
};
use crate::{ConfigError, limits, public_url::PublicUrl, runtime::Attach, upstream::stored_initialize};

/// The variable with the timeout of requests to a stdio server, as a Go duration.
pub const REQUEST_TIMEOUT: &str = "TOOLHIVE_PROXY_REQUEST_TIMEOUT";

/// A stdio server, and the transport that clients use.
pub(crate) struct StdioServer {
    pub(super) bridge: Arc<Bridge>,
    pub(super) sessions: Arc<Memory>,
    pub(super) endpoint: PublicUrl,
    /// Whether unknown revisions are rejected.
    pub(super) strict: bool,
    /// Whether the `initialize` of each session is kept: calls may need an account that the client's user connects first.
    keeps_initialize: bool,
    mode: ProxyMode,
    phase: watch::Sender<Phase>,
    /// Keeps the server running.
    link: Box<dyn Fn() -> BoxFuture<'static, ()> + Send + Sync>,
}

/// How far the shutdown has got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Running,
    /// Streams are closed; requests in flight are completed.
    Closing,
    /// The server ends.
    Stopped,
}

impl StdioServer {
    pub(crate) fn new<A: Attach + Send + Sync + 'static>(
        config: &RunConfig,
        sessions: Arc<Memory>,
        attach: A,
        request_time: Duration,
    ) -> Result<Self, ConfigError> {
        if config.transport != Transport::Stdio {
            return Err(ConfigError::new("transport: a server that is attached to must be of stdio"));
        }
        if config.stateless {
            return Err(ConfigError::new("stateless: a stdio server keeps a session, so this must be false"));
        }
        let bridge = Bridge::new(request_time);
        let (phase, watched) = watch::channel(Phase::Running);
        let (attach, linked) = (Arc::new(attach), bridge.clone());
        let link = move || link::run(linked.clone(), attach.clone(), watched.clone()).boxed();
        Ok(Self {
            bridge,
            sessions,
            endpoint: PublicUrl::new(config),
            strict: config.strict_protocol_validation,
            keeps_initialize: config.embedded_auth_server_config.is_some(),
            mode: config.proxy_mode(),
            phase,
            link: Box::new(link),
        })
    }

    /// Keeps the server running, until [`stop`](Self::stop).
    pub(crate) async fn run(&self) {
        tokio::select! {
            () = (self.link)() => {}
            () = self.sweep() => {}
        }
    }

    /// Ends the streams of clients that listen.
    pub(crate) fn close(&self) {
        self.phase.send_replace(Phase::Closing);
    }

    /// Ends the server.
    pub(crate) fn stop(&self) {
        self.phase.send_replace(Phase::Stopped);
    }

    /// The state of the server.
    pub(crate) fn status(&self) -> Status {
        self.bridge.status()
    }

    /// Counts how often the server has announced other tools.
    pub(crate) fn tool_changes(&self) -> watch::Receiver<u64> {
        self.bridge.tool_changes()
    }

    /// The transport of clients, for health checks.
    pub(crate) fn front(&self) -> &'static str {
        match self.mode {
            ProxyMode::StreamableHttp => Transport::StreamableHttp.as_str(),
            ProxyMode::Sse => Transport::Stdio.as_str(),
        }
    }

    /// Whether clients use the HTTP+SSE transport of 2024.
    pub(crate) fn is_http_sse(&self) -> bool {
        self.mode == ProxyMode::Sse
    }

    /// Responds to a request.
    pub(crate) async fn send(&self, exchange: &Exchange) -> Result<Response<Body>, Rejection> {
        match self.mode {
            ProxyMode::StreamableHttp => self.streamable(exchange).await,
            ProxyMode::Sse => self.http_sse(exchange).await,
        }
    }

    pub(super) fn phase(&self) -> watch::Receiver<Phase> {
        self.phase.subscribe()
    }

    /// The session of this id, if the caller started it.
    pub(super) fn session(&self, exchange: &Exchange, id: &str) -> Result<SessionKey, Rejection> {
        let router = self.bridge.router();
        let member = router.members.get(id).ok_or(Rejection::Session)?;
        if member.owner != exchange.owner() {
            return Err(Rejection::Session);
        }
        self.sessions.get(id).ok_or(Rejection::Session)?;
        Ok(id.into())
    }

    /// Starts a session of this caller.
    pub(super) fn start_session(
        &self,
        exchange: &Exchange,
        abilities: Abilities,
    ) -> Result<SessionKey, Rejection> {
        let id = skep_mcp::SessionId::random();
        let owner = Some(exchange.owner());
        let initialize = stored_initialize(exchange).filter(|_| self.keeps_initialize);
        let session = skep_gateway::sessions::Session { server_id: None, pod: None, initialize, owner };
        let stored = self.sessions.put(id.as_str(), session, exchange.peer.ip());
        stored.map_err(|_| Rejection::Unavailable("sessions"))?;
        let key: SessionKey = id.as_str().into();
        self.bridge.router().members.insert(key.clone(), Member::new(exchange.owner(), abilities));
        Ok(key)
    }

    /// Removes the state of expired sessions, from time to time, for ever.
    async fn sweep(&self) {
        let mut ticks = tokio::time::interval(limits::SWEEP);
        loop {
            ticks.tick().await;
            let sessions = self.bridge.router().members.keys();
            for session in sessions.iter().filter(|session| !self.sessions.knows(session)) {
                self.bridge.router().end_session(session);
            }
        }
    }
}

/// The timeout of requests to a stdio server, by the value of `TOOLHIVE_PROXY_REQUEST_TIMEOUT`.
pub fn request_time(env: Option<&str>) -> Result<Duration, ConfigError> {
    let Some(text) = env.filter(|text| !text.is_empty()) else { return Ok(limits::REQUEST_TIME) };
    match duration::parse(text) {
        Ok(time) if !time.is_zero() => Ok(time.min(limits::LONGEST_REQUEST)),
        Ok(_) => Err(ConfigError::new(format!("{REQUEST_TIMEOUT}: must be longer than zero"))),
        Err(error) => Err(ConfigError::new(format!("{REQUEST_TIMEOUT}: {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_timeout_can_be_set_and_an_invalid_one_is_an_error() {
        assert_eq!(request_time(None).unwrap(), Duration::from_secs(60));
        assert_eq!(request_time(Some("")).unwrap(), Duration::from_secs(60));
        assert_eq!(request_time(Some("1m30s")).unwrap(), Duration::from_secs(90));
        assert_eq!(request_time(Some("900h")).unwrap(), limits::LONGEST_REQUEST);
        for wrong in ["0s", "-1s", "soon", "60"] {
            let error = request_time(Some(wrong)).unwrap_err().to_string();
            assert!(error.starts_with(REQUEST_TIMEOUT), "{error}");
        }
    }
}
