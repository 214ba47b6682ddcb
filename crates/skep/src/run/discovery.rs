//! Listing the tools of a server before clients connect.

use std::time::Duration;

use skep_config::{
    RunConfig,
    run_config::{Middleware, ProxyMode, Transport},
};
use skep_proxy::{Configured, Extras, Proxy, REQUEST_TIMEOUT, Workers, request_time, serve};
use tokio::{net::TcpListener, sync::watch};
use tracing::{Instrument, error_span};

use super::{attachment::Start, logs::DISCOVERY, plan::Server};
use crate::mcp_client::{self, ClientError};

/// How long a stdio server may be unavailable before that is reported. A remote server is reported at once.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a local process may take to listen.
const PATIENCE_WITH_OURS: Duration = Duration::from_secs(60);
/// The timeout of the whole discovery. npx may have to download the server first.
const LONGEST: Duration = Duration::from_secs(180);
/// How often a server may exit before that is reported.
const MOST_EXITS: u32 = 3;
/// The first delay of retries. Each further delay is twice as long.
const PAUSE: Duration = Duration::from_millis(200);
/// The longest delay of retries.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// The proxy of this RunConfig.
pub(super) fn proxy(
    config: &RunConfig,
    server: &Server,
    start: &Start,
    extras: Extras,
) -> Result<Proxy, String> {
    let configured = Configured { config, extras };
    let made = if config.transport == Transport::Stdio && config.remote_url.is_empty() {
        let attachment = start.attachment(config)?;
        request_time(server.env.get(REQUEST_TIMEOUT).map(String::as_str))
            .and_then(|time| Proxy::with_attached(configured, attachment, time))
    } else {
        Proxy::new(configured)
    };
    made.map_err(|error| error.to_string())
}

/// The tools that clients are offered, or none if that cannot be determined.
///
/// A separate, temporary proxy is used: a stdio server is initialized once, by its first client, whose revision and capabilities
/// then apply to all clients. So the process is started twice, one after the other.
pub(super) async fn tools(
    config: &RunConfig,
    server: &Server,
    start: &Start,
    stop: watch::Receiver<bool>,
) -> Result<Option<Vec<String>>, ClientError> {
    let Some(config) = discovery_config(config) else { return Ok(None) };
    let proxy = proxy(&config, server, start, Extras::default()).map_err(ClientError::Rejected)?;
    let no_port = |error: std::io::Error| ClientError::Rejected(error.to_string());
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.map_err(no_port)?;
    let address = listener.local_addr().map_err(no_port)?;
    let (end, ended) = watch::channel(());
    let span = error_span!(DISCOVERY);
    let serving = tokio::spawn(
        serve(listener, proxy.endpoint(), Workers::default(), until_dropped(ended)).instrument(span),
    );
    let patience = match (server.listens(), config.remote_url.is_empty()) {
        (true, _) => PATIENCE_WITH_OURS,
        (false, true) => PATIENCE,
        (false, false) => Duration::ZERO,
    };
    let listing = list_tools(address, patience, start);
    let tools = tokio::select! {
        tools = tokio::time::timeout(LONGEST, listing) => tools,
        () = stopped(stop) => Ok(Ok(Vec::new())),
    };
    drop(end);
    serving.await.ok();
    match tools {
        Ok(Ok(tools)) => Ok(Some(tools)),
        Ok(Err(failure)) => Err(failure),
        Err(_) => Err(ClientError::Rejected("it does not respond".into())),
    }
}

/// Completes when the sender is dropped.
async fn until_dropped(mut watched: watch::Receiver<()>) {
    while watched.changed().await.is_ok() {}
}

/// Completes when it should stop.
pub(super) async fn stopped(mut stop: watch::Receiver<bool>) {
    stop.wait_for(|stop| *stop).await.ok();
}

/// Retries until the server is available, for some time, unless it exits repeatedly.
async fn list_tools(
    address: std::net::SocketAddr,
    patience: Duration,
    start: &Start,
) -> Result<Vec<String>, ClientError> {
    let (begin, times) = (tokio::time::Instant::now(), start.times());
    let mut pause = PAUSE;
    loop {
        let tools = mcp_client::tools(address).await;
        let Err(ClientError::Unavailable(why)) = tools else { return tools };
        let exits = (start.times() - times).saturating_sub(1);
        if exits >= MOST_EXITS || begin.elapsed() >= patience {
            let why = match start.problem() {
                Some(problem) => format!("it cannot be started: {problem}"),
                None if exits >= MOST_EXITS => "it exits right after its start: see its output above".into(),
                None => why,
            };
            return Err(ClientError::Unavailable(why));
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// The same server behind the same policies, without audit, rate limits and telemetry. None if callers need a token, or if it
/// speaks HTTP+SSE.
fn discovery_config(config: &RunConfig) -> Option<RunConfig> {
    let mut discovery = RunConfig { proxy_mode: Some(ProxyMode::StreamableHttp), ..config.clone() };
    let needs_token =
        |middleware: &Middleware| matches!(middleware, Middleware::Auth(auth) if auth.oidc_config.is_some());
    if discovery.middleware_configs.iter().any(needs_token) || discovery.transport == Transport::Sse {
        return None;
    }
    discovery.middleware_configs.retain(|middleware| {
        !matches!(
            middleware,
            Middleware::Audit(_)
                | Middleware::Telemetry(_)
                | Middleware::RateLimit(_)
                | Middleware::UsageMetrics
        )
    });
    discovery.scaling_config = None;
    Some(discovery)
}
