//! A virtual server over HTTP, in front of backends that can do what real ones do only by accident.

// A test panics where it fails.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod announcements;
mod audit;
mod backend;
mod cancelled;
mod client;
mod complaints;
mod discovery;
mod embeddings;
mod exchanged_tokens;
mod explain;
mod faults;
mod hints;
mod input;
mod killed;
mod load;
mod long;
mod memory;
mod metrics;
mod names;
mod nested;
mod policies;
mod questions;
mod rate_limits;
mod replicas;
mod resumed;
mod scripted;
mod scripts;
mod search;
mod sessions;
mod streams;
mod tasks;
mod tenants;
mod upstream_tokens;
mod waiting;
mod workflows;

use std::{net::SocketAddr, sync::Arc, time::Duration};

use skep_vmcp::{
    AuthorizationServer, Cluster, ConfigError, Extras, Listen, Settings, VirtualServer, Workers, serve,
};
use tokio::{net::TcpListener, runtime::Runtime, sync::oneshot, task::JoinHandle};

use backend::Backend;
use client::Client;

/// A running virtual server.
struct Server {
    address: SocketAddr,
    server: VirtualServer,
    stop: oneshot::Sender<()>,
    served: JoinHandle<()>,
}

impl Server {
    /// One in front of these backends, with more lines in its configuration.
    async fn before(backends: &[(&str, &Backend)], more: &str) -> Self {
        Self::with_life(backends, more, None).await
    }

    async fn with_life(backends: &[(&str, &Backend)], more: &str, life: Option<Duration>) -> Self {
        let backends: Vec<_> = backends.iter().map(|(name, backend)| (*name, backend.url())).collect();
        Self::with_urls(&backends, more, life).await
    }

    async fn with_urls(backends: &[(&str, String)], more: &str, life: Option<Duration>) -> Self {
        Self::of(&Self::config(backends, more), life, None).await
    }

    /// A configuration with these backends, and more lines.
    fn config(backends: &[(&str, String)], more: &str) -> String {
        let line = |(name, url): &(&str, String)| {
            format!("  - {{name: {name}, url: \"{url}\", transport: streamable-http}}\n")
        };
        let list: String = backends.iter().map(line).collect();
        format!(
            "name: test\ngroupRef: test\nincomingAuth: {{type: anonymous}}\noutgoingAuth: {{source: inline}}\n\
             aggregation:\n  conflictResolution: prefix\n  conflictResolutionConfig: {{prefixFormat: \"{{workload}}_\"}}\n\
             backends:\n{list}{more}"
        )
    }

    /// The one of this configuration.
    async fn of(config: &str, life: Option<Duration>, cluster: Option<Cluster>) -> Self {
        let settings = Settings::parse(config).unwrap_or_else(|errors| panic!("{errors:?}"));
        Self::run(settings, life, cluster).await
    }

    /// The one with these settings.
    async fn run(settings: Settings, life: Option<Duration>, cluster: Option<Cluster>) -> Self {
        let listen = Listen { host: "127.0.0.1".into(), session_life: life, audits: false };
        let server = settings.server(&listen, cluster).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = server.endpoint();
        let served = tokio::spawn(async move {
            let stopped = async { drop(stopped.await) };
            serve(listener, serving, Workers::default(), stopped).await.unwrap();
        });
        Self { address, server, stop, served }
    }

    /// Has these backends from now on.
    fn set_backends(&self, backends: &[(&str, &Backend)]) {
        let backends: Vec<_> = backends.iter().map(|(name, backend)| (*name, backend.url())).collect();
        self.server.set_backends(&Settings::parse(&Self::config(&backends, "")).unwrap()).unwrap();
    }

    /// Stops it, and waits until it has.
    async fn stop(self) {
        self.stop.send(()).ok();
        self.served.await.unwrap();
    }

    /// A client with a session.
    async fn client(&self) -> Client {
        Client::start(self.address, serde_json::json!({})).await
    }
}

fn with_authorization_server(
    settings: Settings,
    server: Arc<dyn AuthorizationServer>,
) -> Result<Settings, ConfigError> {
    settings.with_extras(Extras { authorization_server: Some(server), ..Extras::default() })
}

/// A virtual server that can be killed as a process can: with its runtime, all of its tasks and connections end at once.
struct Replica {
    address: SocketAddr,
    runtime: Option<Runtime>,
}

impl Replica {
    async fn before(backend: &Backend, more: &str) -> Self {
        Self::with_secret(backend, more, None).await
    }

    /// One with a secret that other replicas have, too.
    async fn with_secret(backend: &Backend, more: &str, secret: Option<&str>) -> Self {
        let mut settings = Settings::parse(&Server::config(&[("a", backend.url())], more)).unwrap();
        if let Some(secret) = secret {
            settings = settings.with_session_secret(secret).unwrap();
        }
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let started = runtime.spawn(Server::run(settings, None, None));
        let server = started.await.unwrap();
        let address = server.address;
        // It is never stopped.
        runtime.spawn(async move { server.served.await.map(|()| drop(server.stop)) });
        Self { address, runtime: Some(runtime) }
    }

    fn kill(self) {}
}

impl Drop for Replica {
    fn drop(&mut self) {
        self.runtime.take().into_iter().for_each(Runtime::shutdown_background);
    }
}

/// Waits until something is so, for as long as a test may take.
async fn until(mut is_so: impl FnMut() -> bool) {
    while !is_so() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Lets time pass fast until this is done. The clock of tokio stands between its steps, as a thread blocks, however busy the machine
/// is: what is on its way arrives in no time.
async fn in_fast_time<T>(work: impl Future<Output = T>) -> T {
    in_steps(Duration::from_millis(20), work).await
}

/// The same with steps of this length.
async fn in_steps<T>(step: Duration, work: impl Future<Output = T>) -> T {
    tokio::time::pause();
    let mut work = std::pin::pin!(work);
    loop {
        let pass = async {
            tokio::time::advance(step).await;
            tokio::task::spawn_blocking(|| std::thread::sleep(Duration::from_millis(1))).await.unwrap();
        };
        tokio::select! {
            done = &mut work => {
                tokio::time::resume();
                return done;
            }
            () = pass => {}
        }
    }
}
