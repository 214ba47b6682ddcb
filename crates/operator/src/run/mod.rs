//! The operator as a process: watches, workers, leadership, health and a good end.

mod health;
mod leader;
mod metrics;
mod observer;

use std::{
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use kube::Client;
use tokio::{sync::watch, task::JoinSet};
use tracing::{debug, error, info, warn};

use crate::{
    driver::Failure, drivers::Drivers, migrator::Migrator, plan::Plan, platform, requests::counted_client,
    settings::Settings, watched::watches,
};
use metrics::Metrics;
use observer::Observer;
use skep_converge::Mode;
use skep_world::{Target, World};

pub use leader::Election;

/// How long an API server that does not answer is left alone.
const BETWEEN_QUESTIONS: Duration = Duration::from_secs(3);

/// How the operator runs.
#[derive(Clone, Debug)]
pub struct Options {
    /// The namespaces to work in. All of them if there are none.
    pub namespaces: Vec<String>,
    /// How many objects are worked on at once.
    pub workers: usize,
    /// How replicas agree on who writes. Without it, this one does.
    pub election: Option<Election>,
    /// Where Prometheus collects metrics.
    pub metrics: SocketAddr,
    /// Where the kubelet asks how it goes.
    pub health: SocketAddr,
    /// Whether stored objects are moved to the storage version of their CRD.
    pub migrate: bool,
    /// Whether it only tells what it would write. It then asks for no leadership, and migrates nothing.
    pub observe: bool,
    /// What the installation decides for all objects.
    pub settings: Settings,
}

/// Why the operator ended other than by being asked to.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// No client can be made of the configuration.
    #[error("cannot talk to the cluster: {0}")]
    Client(#[from] kube::Error),
    /// An address cannot be listened on.
    #[error("cannot listen on {0}: {1}")]
    Listen(SocketAddr, std::io::Error),
    /// Leadership cannot be asked for, or was lost to another replica.
    #[error("leader election: {0}")]
    Election(String),
}

/// Runs until `stop` says so, and then finishes what it is at.
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
    mode: Mode,
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
        let mode = if options.observe { Mode::Plan } else { Mode::Write };
        let counts = metrics.clone();
        let client = counted_client(config, mode, move |verb, resource| counts.requested(verb, resource))?;
        let world = watches().start(&client, &options.namespaces);
        Ok(Self { options, mode, client, world, metrics, observer })
    }

    /// The cluster as the operator sees it.
    pub fn world(&self) -> &Arc<World> {
        &self.world
    }

    /// Reconciles until `stop` says so, and then finishes what it is at.
    pub async fn run(self, stop: watch::Receiver<bool>) -> Result<(), RunError> {
        reconcile(self, stop).await
    }
}

async fn reconcile(operator: Operator, stop: watch::Receiver<bool>) -> Result<(), RunError> {
    let Operator { options, mode, client, world, metrics, observer } = operator;
    let mut serving = JoinSet::new();
    health::serve(&mut serving, options.health, world.clone(), None).await?;
    health::serve(&mut serving, options.metrics, world.clone(), Some(metrics.clone())).await?;

    let mut stop = stop;
    let leadership = match &options.election {
        Some(election) if !options.observe => {
            let asked = leader::lead(client.clone(), election, &mut stop).await?;
            let Some(leadership) = asked else { return Ok(()) };
            Some(leadership)
        }
        _ => None,
    };
    tokio::select! {
        () = world.listed() => {}
        _ = stop.wait_for(|stop| *stop) => return Ok(()),
    }
    let settings = tokio::select! {
        settings = settings(&options.settings, &client) => settings,
        _ = stop.wait_for(|stop| *stop) => return Ok(()),
    };
    info!(workers = options.workers, observe = options.observe, platform = ?settings.platform(), "working");
    let mut workers = JoinSet::new();
    let migrate = options.migrate && !options.observe;
    if migrate && options.namespaces.is_empty() {
        let (migrator, stop) = (Migrator::new(client.clone()), stop.clone());
        workers.spawn(async move { migrator.run(stop).await });
    } else if migrate {
        // A CRD is of the whole cluster, and so are the objects that must all be written before it may be changed.
        warn!(
            "stored objects are not migrated: that needs rights in the whole cluster, and namespaces are given"
        );
    }
    let drivers = Arc::new(Drivers::new(client, world.clone(), settings, mode));
    for _ in 0..options.workers {
        let work = work(world.clone(), drivers.clone(), metrics.clone(), observer.clone(), stop.clone());
        workers.spawn(work);
    }
    let ended = match leadership {
        Some(leadership) => leadership.until_lost_or(&mut stop).await,
        None => {
            stop.wait_for(|stop| *stop).await.ok();
            Ok(())
        }
    };
    if ended.is_ok() {
        // Each worker finishes the object that it is at.
        workers.join_all().await;
        info!("stopped");
    }
    ended
}

/// What holds for all objects. It is asked for until there is an answer: with a wrong one, all pods would be others.
async fn settings(told: &Settings, client: &Client) -> Settings {
    loop {
        match platform::settled(told, client).await {
            Ok(settings) => return settings,
            Err(error) => {
                warn!(%error, "cannot tell whether the cluster is an OpenShift: OPERATOR_OPENSHIFT can say it");
            }
        }
        tokio::time::sleep(BETWEEN_QUESTIONS).await;
    }
}

async fn work(
    world: Arc<World>,
    drivers: Arc<Drivers>,
    metrics: Arc<Metrics>,
    observer: Option<Arc<Observer>>,
    mut stop: watch::Receiver<bool>,
) {
    loop {
        let job = tokio::select! {
            job = world.queue().next() => job,
            _ = stop.wait_for(|stop| *stop) => return,
        };
        metrics.queue_depth.set(i64::try_from(world.queue().depth()).unwrap_or(i64::MAX));
        let start = Instant::now();
        let result = drivers.reconcile(&job.target).await;
        metrics.reconciled(job.target.kind.kind, result.is_ok(), start.elapsed());
        match &observer {
            Some(observer) => observer.take_in(&job.target, &result),
            None => tell(&job.target, &result),
        }
        world.queue().finish(job, result.is_err());
    }
}

fn tell(target: &Target, result: &Result<Plan, Failure>) {
    let Target { kind, namespace, name } = target;
    match result {
        Ok(_) => debug!(kind = kind.kind, %namespace, %name, "worked on"),
        Err(Failure::Write(stale)) if stale.is_stale() => {
            debug!(kind = kind.kind, %namespace, %name, error = %stale, "changed meanwhile");
        }
        Err(failure) => {
            error!(kind = kind.kind, %namespace, %name, error = %failure, "to be tried again")
        }
    }
}
