//! What a server offers, found out before clients come.

use std::{sync::Arc, time::Duration};

use skep_config::{
    RunConfig,
    run_config::{Middleware, ProxyMode, Transport},
};
use skep_proxy::{Proxy, REQUEST_TIMEOUT, Workers, request_time, serve};
use tokio::{net::TcpListener, sync::watch};
use tracing::{Instrument, error_span};

use super::{
    attachment::Start,
    client::{self, Failure},
    logs::TRIAL,
    plan::Server,
};

/// How long a stdio server may be away before that is said. One that is elsewhere is away at once.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a process of ours may take to listen.
const PATIENCE_WITH_OURS: Duration = Duration::from_secs(60);
/// How long it may take to answer, as npx may have to get it first.
const LONGEST: Duration = Duration::from_secs(180);
/// How often a server may end at once before that is said.
const DEATHS: u32 = 3;
/// How soon it is asked again. The next wait is twice as long.
const PAUSE: Duration = Duration::from_millis(200);
/// How long the waits become at most.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// The proxy of this RunConfig.
pub(super) fn proxy(config: &RunConfig, server: &Server, start: &Start) -> Result<Proxy, String> {
    let made = if config.transport == Transport::Stdio && config.remote_url.is_empty() {
        let attachment = start.attachment(config)?;
        request_time(server.env.get(REQUEST_TIMEOUT).map(String::as_str))
            .and_then(|time| Proxy::attached(config, attachment, time))
    } else {
        Proxy::new(config)
    };
    made.map_err(|error| error.to_string())
}

/// The tools that clients are offered, or nothing where that cannot be known.
///
/// A proxy of its own asks, and is gone again: a stdio server is begun once, by the first of its clients, and whatever
/// revision and abilities that has would be those of all. So the process is started twice, one after the other.
pub(super) async fn tools(
    config: &RunConfig,
    server: &Server,
    start: &Start,
    stop: watch::Receiver<bool>,
) -> Result<Option<Vec<String>>, Failure> {
    let Some(config) = config_of_trial(config) else { return Ok(None) };
    let proxy = Arc::new(proxy(&config, server, start).map_err(Failure::Refused)?);
    let no_port = |error: std::io::Error| Failure::Refused(error.to_string());
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.map_err(no_port)?;
    let address = listener.local_addr().map_err(no_port)?;
    let (end, ended) = watch::channel(());
    let span = error_span!(TRIAL);
    let serving =
        tokio::spawn(serve(listener, proxy, Workers::default(), until_dropped(ended)).instrument(span));
    let patience = match (server.listens(), config.remote_url.is_empty()) {
        (true, _) => PATIENCE_WITH_OURS,
        (false, true) => PATIENCE,
        (false, false) => Duration::ZERO,
    };
    let asking = patient(address, patience, start);
    let tools = tokio::select! {
        tools = tokio::time::timeout(LONGEST, asking) => tools,
        () = stopped(stop) => Ok(Ok(Vec::new())),
    };
    drop(end);
    serving.await.ok();
    match tools {
        Ok(Ok(tools)) => Ok(Some(tools)),
        Ok(Err(failure)) => Err(failure),
        Err(_) => Err(Failure::Refused("it does not answer".into())),
    }
}

/// Done when nobody is left to say more.
async fn until_dropped(mut watched: watch::Receiver<()>) {
    while watched.changed().await.is_ok() {}
}

/// Done when it is to stop.
pub(super) async fn stopped(mut stop: watch::Receiver<bool>) {
    stop.wait_for(|stop| *stop).await.ok();
}

/// Asks until the server is there, for some time, and as long as it does not end again and again.
async fn patient(
    address: std::net::SocketAddr,
    patience: Duration,
    start: &Start,
) -> Result<Vec<String>, Failure> {
    let (begin, times) = (tokio::time::Instant::now(), start.times());
    let mut pause = PAUSE;
    loop {
        let tools = client::tools(address).await;
        let deaths = (start.times() - times).saturating_sub(1);
        match tools {
            Err(Failure::Away(_)) if deaths >= DEATHS => {
                return Err(Failure::Away(match start.problem() {
                    Some(problem) => format!("it cannot be started: {problem}"),
                    None => "it ends as soon as it is started: what it says is above".into(),
                }));
            }
            Err(Failure::Away(_)) if begin.elapsed() < patience => tokio::time::sleep(pause).await,
            tools => return tools,
        }
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// The same server behind the same policies, without a trace in logs, counts and traces. Nothing if callers need a
/// token, or if it speaks in the way of 2024.
fn config_of_trial(config: &RunConfig) -> Option<RunConfig> {
    let mut trial = RunConfig { proxy_mode: Some(ProxyMode::StreamableHttp), ..config.clone() };
    let needs_token =
        |middleware: &Middleware| matches!(middleware, Middleware::Auth(auth) if auth.oidc_config.is_some());
    if trial.middleware_configs.iter().any(needs_token) || trial.transport == Transport::Sse {
        return None;
    }
    trial.middleware_configs.retain(|middleware| {
        !matches!(
            middleware,
            Middleware::Audit(_)
                | Middleware::Telemetry(_)
                | Middleware::RateLimit(_)
                | Middleware::UsageMetrics
        )
    });
    trial.scaling_config = None;
    Some(trial)
}
