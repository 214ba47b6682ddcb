//! The endpoint of a virtual server.
//!
//! A request passes through the chain of middlewares, which authenticate the caller, limit rates, apply policies and
//! record it. Then its method decides: a few are answered here ([`methods`]), lists come from the catalog of the session
//! ([`lists`]), and everything else is for one backend ([`call`]), whose messages are relayed ([`relay`]). A composite tool
//! makes several calls ([`workflow`]), and so does a script ([`script`]). Where clients search for tools, find_tool is answered
//! here, and a call of call_tool is the call of another tool from the start ([`search`]).

mod announce;
mod answer;
mod call;
mod call_digest;
mod connect;
mod from_backend;
mod guard;
mod hints;
mod lists;
mod measured;
mod methods;
mod notifications;
mod own;
mod pages;
mod parameters;
mod questions;
mod relay;
mod relays;
mod resolve;
mod rpc;
mod running;
mod script;
mod search;
mod sessions;
mod stream;
mod subscribe;
mod subscription;
mod upstream;
mod workflow;

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use futures::StreamExt;
use skep_auth::Seal;
use skep_gateway::{
    body::Budget,
    endpoint::{Endpoint, Parts as EndpointParts},
    http::Service,
    message::Exchange,
    middleware::{BackendState, Chain},
    sessions::{Memory, Records},
};
use skep_mcp::{Envelope, Era, Method, Raw};
use tokio::{
    sync::{Mutex, mpsc, watch},
    task::AbortHandle,
};
use tracing::Instrument;

use crate::{
    ConfigError, Settings,
    admission::Admission,
    backend::{Backend, Caller, Factory},
    discovery::Discovery,
    level::Level,
    limits,
    report::{self, Reporter},
    scripts::Scripts,
    search::Search,
    session::{AllCapabilities, ClientSession, Ended, Known, Opened, Presence},
    views::Views,
};
use guard::Guard;
use relay::ParkedCalls;
use upstream::Backends;
use workflow::KeptRuns;

/// A virtual MCP server.
#[derive(Clone)]
pub struct VirtualServer(Arc<Endpoint<Backends>>);

/// All of it. Workflows that run keep it.
pub(crate) struct Front {
    pub(crate) name: Arc<str>,
    pub(crate) group: String,
    pub(crate) views: Arc<Views>,
    pub(crate) chain: Arc<Chain>,
    sessions: Arc<Memory<Known>>,
    /// Sessions that all replicas see.
    records: Option<Arc<Records>>,
    /// The sessions at backends of callers that have none here, since 2026-07-28.
    stateless: Arc<Memory<Known>>,
    parked: Arc<ParkedCalls>,
    /// Workflows that wait for an answer, which any replica can go on with.
    kept: Option<Arc<KeptRuns>>,
    presence: Presence,
    capabilities: AllCapabilities,
    ended: Ended,
    ending: Mutex<mpsc::Receiver<Opened>>,
    passthrough: Vec<http::HeaderName>,
    guard: Guard,
    budget: Budget,
    number: AtomicU64,
    closing: watch::Sender<bool>,
    /// Whether all backends are known.
    is_synced: watch::Sender<bool>,
    /// Whether it is also known what they offer, or that they do not respond.
    is_ready: watch::Sender<bool>,
    discovery: Option<Discovery>,
    factory: Factory,
    reporter: Option<Reporter>,
    scripts: Option<Arc<Scripts>>,
    /// The workflows of each caller.
    workflows: Admission<()>,
    /// The calls of each caller that wait for an account.
    connecting: Admission<()>,
    search: Option<Arc<Search>>,
}

/// What a virtual server is made of.
pub(crate) struct Parts {
    pub(crate) name: Arc<str>,
    pub(crate) group: String,
    pub(crate) views: Arc<Views>,
    pub(crate) chain: Arc<Chain>,
    pub(crate) passthrough: Vec<http::HeaderName>,
    pub(crate) session_life: Duration,
    /// Where sessions are stored that all replicas see.
    pub(crate) records: Option<Records>,
    /// What encrypts the runs of workflows that are stored there.
    pub(crate) seal: Arc<Seal>,
    /// What bodies of requests, and messages of backends, may take.
    pub(crate) budget: Budget,
    /// Whether it listens on this machine only.
    pub(crate) is_local: bool,
    /// How backends are discovered.
    pub(crate) discovery: Option<Discovery>,
    /// How they are made.
    pub(crate) factory: Factory,
    pub(crate) reporter: Option<Reporter>,
    /// What scripts may use, where clients can run them.
    pub(crate) scripts: Option<Arc<Scripts>>,
    /// How clients search for tools, where they do.
    pub(crate) search: Option<Arc<Search>>,
}

/// A request of a client that has passed through the chain.
pub(crate) struct ClientRequest<'a> {
    exchange: &'a Exchange,
    envelope: Envelope<'a>,
    method: Method,
    era: Era,
    /// Its id, as it is spelled.
    id: &'a str,
    session: Arc<ClientSession>,
    caller: Caller,
}

impl ClientRequest<'_> {
    /// The lowest level of log messages that the client wants: since 2026-07-28, each request has its own.
    fn log_level(&self) -> Option<Level> {
        if self.era == Era::Legacy {
            return self.session.level();
        }
        let meta = self.envelope.params().and_then(|params| params.get("_meta"))?;
        let level = meta.get("io.modelcontextprotocol/logLevel").and_then(Raw::as_text)?;
        Level::named(&level)
    }
}

impl VirtualServer {
    pub(crate) fn new(endpoint: EndpointParts, parts: Parts) -> Self {
        Self(Arc::new(Endpoint::new(endpoint, Backends(Arc::new(Front::with(parts))))))
    }

    /// The endpoint, for a listener to serve.
    pub fn endpoint(&self) -> Arc<impl Service + use<>> {
        self.0.clone()
    }

    fn front(&self) -> &Front {
        &self.0.upstream().0
    }

    /// Checks that everything that the server needs besides its backends is available. To be called before it serves.
    pub async fn check(&self) -> Result<(), ConfigError> {
        if let Some(records) = &self.front().records {
            records.check().await?;
        }
        self.front().chain.check().await
    }

    /// Uses the backends of another configuration. Those that stay keep their sessions.
    pub fn set_backends(&self, settings: &Settings) -> Result<(), ConfigError> {
        let front = self.front();
        front.views.replace(&front.factory, &settings.blueprints()?).map_err(ConfigError::new)
    }

    /// Counts changes of its backends, of which each may change what clients see.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.front().views.changes()
    }

    /// The state of all backends, as the status of a VirtualMCPServer has it.
    pub fn backend_states(&self) -> Vec<serde_json::Value> {
        report::states(&self.front().views)
    }

    /// Makes every client use another connection for its next request, and so another replica.
    pub fn drain(&self) {
        self.0.drain();
    }
}

impl Front {
    fn with(parts: Parts) -> Self {
        let Parts {
            name,
            group,
            views,
            chain,
            passthrough,
            session_life,
            records,
            seal,
            budget,
            is_local,
            discovery,
            factory,
            reporter,
            scripts,
            search,
        } = parts;
        let (ended, ending) = Ended::new();
        Self {
            name,
            group,
            views,
            chain,
            sessions: Arc::new(Memory::new(session_life)),
            kept: records.as_ref().map(|records| Arc::new(KeptRuns::new(records, &seal))),
            records: records.map(Arc::new),
            stateless: Arc::new(Memory::new(session_life)),
            parked: Arc::new(ParkedCalls::new()),
            presence: Presence::new(),
            capabilities: AllCapabilities::default(),
            ended,
            ending: Mutex::new(ending),
            passthrough,
            guard: Guard::new(is_local),
            budget,
            number: AtomicU64::new(1),
            closing: watch::Sender::new(false),
            is_synced: watch::Sender::new(discovery.is_none()),
            is_ready: watch::Sender::new(false),
            discovery,
            factory,
            reporter,
            scripts,
            workflows: Admission::default(),
            connecting: Admission::default(),
            search,
        }
    }

    /// A number that no other request to a backend has.
    fn next_number(&self) -> u64 {
        self.number.fetch_add(1, Ordering::Relaxed)
    }

    /// Looks after the backends that there are, for ever.
    async fn run_backends(&self) {
        let mut running: HashMap<Arc<str>, (Arc<Backend>, AbortOnDrop)> = HashMap::new();
        let mut changes = self.views.changes();
        loop {
            let backends = self.views.backends();
            self.measure(&backends);
            running.retain(|name, (backend, _)| {
                backends.get(name).is_some_and(|current| Arc::ptr_eq(current, backend))
            });
            for (name, backend) in &*backends {
                running.entry(name.clone()).or_insert_with(|| {
                    let (task, count) = (backend.clone(), self.presence.count());
                    // Where several servers are in one process, its lines of the log have the name of this one.
                    let task = tokio::spawn(async move { task.run(count).await }.in_current_span());
                    (backend.clone(), AbortOnDrop(task.abort_handle()))
                });
            }
            if changes.changed().await.is_err() {
                return;
            }
        }
    }

    /// Sets the metrics about the state of backends.
    fn measure(&self, backends: &crate::views::Backends) {
        let Some(telemetry) = self.chain.telemetry() else { return };
        let state = |(name, backend): (&'_ Arc<str>, &Arc<Backend>)| {
            let health = backend.health();
            (name.clone(), health.status.as_str(), health.circuit.as_str())
        };
        let states: Vec<_> = backends.iter().map(state).collect();
        let states =
            states.iter().map(|(name, health, circuit)| BackendState { backend: name, health, circuit });
        telemetry.set_backends(&states.collect::<Vec<_>>());
    }

    /// Follows the members of the group, where backends are discovered.
    async fn discover(&self) {
        match &self.discovery {
            Some(discovery) => discovery.run(&self.views, &self.factory, &self.is_synced).await,
            None => std::future::pending().await,
        }
    }

    /// Becomes ready once the backends have been listed, so that a client that has used another replica finds the same
    /// tools here. One that does not respond is waited for a while only.
    async fn become_ready(&self) {
        self.is_synced.subscribe().wait_for(|is_synced| *is_synced).await.ok();
        let backends = self.views.backends();
        let listed = futures::future::join_all(backends.values().map(|backend| backend.first_lists()));
        tokio::time::timeout(limits::FIRST_LISTS_TIME, listed).await.ok();
        self.is_ready.send_replace(true);
        std::future::pending().await
    }

    /// Reports the state of the backends, in a cluster.
    async fn report(&self, is_draining: &AtomicBool) {
        match &self.reporter {
            Some(reporter) => reporter.run(&self.views, &self.is_synced, is_draining).await,
            None => std::future::pending().await,
        }
    }

    /// Ends sessions at backends that are no longer needed, for ever.
    async fn end_sessions(&self) {
        let mut ending = self.ending.lock().await;
        let sessions = futures::stream::poll_fn(|context| ending.poll_recv(context));
        sessions.for_each_concurrent(limits::ENDING_AT_ONCE, |opened| self.end(opened)).await;
    }

    /// Ends all sessions at backends, as the process does.
    async fn end_all_sessions(&self) {
        self.sessions.clear();
        self.stateless.clear();
        let mut ending = self.ending.lock().await;
        let left = futures::stream::iter(std::iter::from_fn(|| ending.try_recv().ok()));
        let ended = left.for_each_concurrent(limits::ENDING_AT_ONCE, |opened| self.end(opened));
        tokio::time::timeout(limits::END_SESSION_TIME, ended).await.ok();
    }

    async fn end(&self, opened: Opened) {
        let Opened { backend, link, caller, shared } = opened;
        // Another replica may still use it.
        if let (Some(records), Some(id)) = (&self.records, &shared)
            && records.contains(id).await.unwrap_or(true)
        {
            return;
        }
        tokio::time::timeout(limits::END_SESSION_TIME, backend.close(&link, &caller)).await.ok();
    }
}

/// A task that ends with its handle.
struct AbortOnDrop(AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}
