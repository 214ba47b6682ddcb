//! The operator as a process: watches, workers, leader election, health, metrics and a graceful shutdown.

mod health;
mod leader;
mod metrics;
mod observer;
pub mod permissions;
pub mod plan;
mod platform;
mod registry;
pub mod render;
mod requests;
pub mod schemas;
mod status_health;
mod workers;

use std::{net::SocketAddr, sync::Arc, time::Duration};

use kube::Client;
use tokio::{sync::watch, task::JoinSet};
use tracing::{info, warn};

use crate::{migrator::Migrator, settings::Settings};
use leader::Candidate;
use metrics::Metrics;
use observer::Observer;
use registry::Registry;
pub use registry::watches;
use requests::{REQUEST_TIME, counted_client};
use schemas::SchemaReader;
use skep_converge::Mode;
use skep_world::World;
use status_health::StatusHealth;
use workers::Worker;

pub use leader::Election;

/// How long to wait before a failed request to the API server is retried.
const PLATFORM_RETRY: Duration = Duration::from_secs(3);

/// How the operator runs.
#[derive(Clone, Debug)]
pub struct Options {
    /// The namespaces to watch. All if there are none.
    pub namespaces: Vec<String>,
    /// How many objects are reconciled at the same time.
    pub workers: usize,
    /// How replicas elect a leader. Without it, this one leads.
    pub election: Option<Election>,
    /// Address for metrics in the format of Prometheus.
    pub metrics: SocketAddr,
    /// Address for health probes.
    pub health: SocketAddr,
    /// Whether stored objects are migrated to the storage version of their CRD.
    pub migrate: bool,
    /// How long no status may be written before the operator is not ready.
    pub unready_after: Duration,
    /// Whether it only reports what it would write. It then takes part in no election, and migrates nothing.
    pub observe: bool,
    /// The settings of the installation.
    pub settings: Settings,
}

impl Options {
    /// Long enough for an API server to be replaced.
    pub const UNREADY_AFTER: Duration = Duration::from_secs(120);

    fn mode(&self) -> Mode {
        if self.observe { Mode::Plan } else { Mode::Write }
    }
}

/// Why the operator ended without being stopped.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The configuration of the client is invalid.
    #[error("cannot connect to the cluster: {0}")]
    Client(#[from] kube::Error),
    /// An address is not available.
    #[error("cannot listen on {0}: {1}")]
    Listen(SocketAddr, std::io::Error),
    /// The election failed, or another replica became the leader.
    #[error("leader election: {0}")]
    Election(String),
}

/// Runs until `stop` is true, and then completes the reconciliations in progress.
pub async fn run(
    config: kube::Config,
    options: Options,
    stop: watch::Receiver<bool>,
) -> Result<(), RunError> {
    Operator::start(config, options)?.run(stop).await
}

/// An operator whose watches have started.
pub struct Operator {
    options: Options,
    client: Client,
    world: Arc<World>,
    metrics: Arc<Metrics>,
    observer: Option<Arc<Observer>>,
}

impl Operator {
    /// Starts the watches.
    pub fn start(config: kube::Config, options: Options) -> Result<Self, RunError> {
        let mut metrics = Metrics::default();
        let observer = options.observe.then(|| Arc::new(Observer::new(&mut metrics.registry)));
        let metrics = Arc::new(metrics);
        let counts = metrics.clone();
        let client = counted_client(config, options.mode(), REQUEST_TIME, move |verb, resource| {
            counts.record_request(verb, resource);
        })?;
        let world = watches().start(&client, &options.namespaces);
        Ok(Self { options, client, world, metrics, observer })
    }

    /// The cluster as the operator sees it.
    pub fn world(&self) -> &Arc<World> {
        &self.world
    }

    /// Reconciles until `stop` is true, and then completes the reconciliations in progress.
    pub async fn run(self, stop: watch::Receiver<bool>) -> Result<(), RunError> {
        reconcile(self, stop).await
    }
}

async fn reconcile(operator: Operator, stop: watch::Receiver<bool>) -> Result<(), RunError> {
    let Operator { options, client, world, metrics, observer } = operator;
    let mut serving = JoinSet::new();
    let statuses = Arc::new(StatusHealth::new(options.unready_after));
    health::serve(&mut serving, options.health, world.clone(), statuses.clone(), None).await?;
    let exported = Some(metrics.clone());
    health::serve(&mut serving, options.metrics, world.clone(), statuses.clone(), exported).await?;

    let mut stop = stop;
    let mut leader = match &options.election {
        Some(election) if !options.observe => {
            let mut candidate = Candidate::new(client.clone(), election);
            if !candidate.acquire(&mut stop).await {
                return Ok(());
            }
            Some(candidate)
        }
        _ => None,
    };
    let written = tokio::select! {
        written = write(&options, &client, &world, &metrics, &statuses, observer, &mut stop) => written,
        // What runs is aborted: nothing is written without the lease.
        lost = hold(leader.as_mut()) => Err(lost),
    };
    if written.is_ok()
        && let Some(leader) = leader
    {
        leader.release().await;
    }
    written
}

/// Holds the lease, if there is one.
async fn hold(leader: Option<&mut Candidate>) -> RunError {
    match leader {
        Some(leader) => leader.hold().await,
        None => std::future::pending().await,
    }
}

/// Reconciles until `stop` is true, and then completes the reconciliations in progress.
async fn write(
    options: &Options,
    client: &Client,
    world: &Arc<World>,
    metrics: &Arc<Metrics>,
    statuses: &Arc<StatusHealth>,
    observer: Option<Arc<Observer>>,
    stop: &mut watch::Receiver<bool>,
) -> Result<(), RunError> {
    tokio::select! {
        () = world.listed() => {}
        _ = stop.wait_for(|stop| *stop) => return Ok(()),
    }
    let settings = tokio::select! {
        settings = resolve_settings(&options.settings, client) => settings,
        _ = stop.wait_for(|stop| *stop) => return Ok(()),
    };
    let mut schemas = SchemaReader::new(client.clone());
    tokio::select! {
        () = schemas.start(metrics) => {}
        _ = stop.wait_for(|stop| *stop) => return Ok(()),
    }
    info!(workers = options.workers, observe = options.observe, platform = ?settings.platform(), "started");
    let mut workers = JoinSet::new();
    let migrate = options.migrate && !options.observe;
    if migrate && options.namespaces.is_empty() {
        let (migrator, stop) = (Migrator::new(client.clone()), stop.clone());
        workers.spawn(async move { skep_panics::restart("migrator", || migrator.run(stop.clone())).await });
    } else if migrate {
        // A CRD belongs to the whole cluster, and so do the objects that must be migrated before it changes.
        warn!(
            "stored objects are not migrated: that needs permissions in the whole cluster, and the operator is limited to \
             namespaces"
        );
    }
    let registry = Arc::new(Registry::new(client, world, settings, &schemas.undeclared, options.mode()));
    let mut following = JoinSet::new();
    let (followed, counts) = (registry.clone(), metrics.clone());
    following.spawn(async move { schemas.keep_following(&followed, &counts).await });
    let worker = Arc::new(Worker {
        world: world.clone(),
        registry,
        metrics: metrics.clone(),
        statuses: statuses.clone(),
        observer,
    });
    for _ in 0..options.workers {
        let (worker, stop) = (worker.clone(), stop.clone());
        workers.spawn(async move { worker.run(stop).await });
    }
    stop.wait_for(|stop| *stop).await.ok();
    // Each worker completes the reconciliation in progress.
    workers.join_all().await;
    info!("stopped");
    Ok(())
}

/// The settings, with the platform. The API server is queried until it responds: with the wrong platform, all pods
/// would be replaced.
async fn resolve_settings(settings: &Settings, client: &Client) -> Settings {
    loop {
        match platform::with_platform(settings, client).await {
            Ok(settings) => return settings,
            Err(error) => {
                warn!(%error, "cannot detect whether the cluster is OpenShift; retrying. Set OPERATOR_OPENSHIFT to skip the detection");
            }
        }
        tokio::time::sleep(PLATFORM_RETRY).await;
    }
}
