//! The members of the group: the backends, and the tasks that follow them.

use std::{
    collections::HashMap,
    sync::{Arc, atomic::AtomicBool},
};

use skep_gateway::middleware::{BackendState, Telemetry};
use tokio::{sync::watch, task::AbortHandle};
use tracing::Instrument;

use crate::{
    backend::{Backend, Factory},
    discovery::Discovery,
    limits,
    report::Reporter,
    views::{Backends, Views},
};

/// The members of the group.
pub(crate) struct Members {
    pub(crate) views: Arc<Views>,
    /// Makes backends.
    pub(super) factory: Factory,
    /// Follows the members of the group, where backends are discovered.
    pub(super) discovery: Option<Discovery>,
    /// Reports the state of the backends, in a cluster.
    reporter: Option<Reporter>,
    /// Whether all backends are known.
    pub(super) is_synced: watch::Sender<bool>,
    /// Whether it is also known what they offer, or that they do not respond.
    pub(super) is_ready: watch::Sender<bool>,
}

impl Members {
    pub(crate) fn new(
        views: Arc<Views>,
        factory: Factory,
        discovery: Option<Discovery>,
        reporter: Option<Reporter>,
    ) -> Self {
        let is_synced = watch::Sender::new(discovery.is_none());
        Self { views, factory, discovery, reporter, is_synced, is_ready: watch::Sender::new(false) }
    }

    /// Follows the members, and keeps their connections and state. Never completes. `sessions` counts the sessions of
    /// clients.
    pub(super) async fn run(
        &self,
        sessions: impl Fn() -> watch::Receiver<u64>,
        telemetry: Option<&Telemetry>,
        is_draining: &AtomicBool,
    ) {
        tokio::select! {
            () = self.run_backends(sessions, telemetry) => {}
            () = self.factory.close_idle_connections() => {}
            () = self.discover() => {}
            () = self.become_ready() => {}
            () = self.report(is_draining) => {}
        }
    }

    /// Runs the task of each backend that there is.
    async fn run_backends(
        &self,
        sessions: impl Fn() -> watch::Receiver<u64>,
        telemetry: Option<&Telemetry>,
    ) {
        let mut running: HashMap<Arc<str>, (Arc<Backend>, AbortOnDrop)> = HashMap::new();
        let mut changes = self.views.changes();
        loop {
            let backends = self.views.backends();
            telemetry.inspect(|telemetry| measure(telemetry, &backends));
            running.retain(|name, (backend, _)| {
                backends.get(name).is_some_and(|current| Arc::ptr_eq(current, backend))
            });
            for (name, backend) in &*backends {
                running.entry(name.clone()).or_insert_with(|| {
                    let (task, count) = (backend.clone(), sessions());
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

    async fn report(&self, is_draining: &AtomicBool) {
        match &self.reporter {
            Some(reporter) => reporter.run(&self.views, &self.is_synced, is_draining).await,
            None => std::future::pending().await,
        }
    }
}

/// Sets the metrics about the state of backends.
fn measure(telemetry: &Telemetry, backends: &Backends) {
    let state = |(name, backend): (&'_ Arc<str>, &Arc<Backend>)| {
        let health = backend.health();
        (name.clone(), health.status.as_str(), health.circuit.as_str())
    };
    let states: Vec<_> = backends.iter().map(state).collect();
    let states =
        states.iter().map(|(name, health, circuit)| BackendState { backend: name, health, circuit });
    telemetry.set_backends(&states.collect::<Vec<_>>());
}

/// A task that ends with its handle.
pub(super) struct AbortOnDrop(pub(super) AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}
