//! The operator's metrics.

use std::{sync::atomic::AtomicI64, time::Duration};

use prometheus_client::{
    encoding::{EncodeLabelSet, text::encode},
    metrics::{
        counter::Counter,
        family::Family,
        gauge::Gauge,
        histogram::{Histogram, exponential_buckets},
    },
    registry::Registry,
};

use skep_world::World;
use tokio::runtime::Handle;

use super::requests::DRY_RUN;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Reconcile {
    kind: &'static str,
    result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ApiRequest {
    verb: &'static str,
    resource: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfKind {
    kind: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct InNamespace {
    namespace: String,
}

/// The metrics of one process.
pub(super) struct Metrics {
    pub(super) registry: Registry,
    reconciles: Family<Reconcile, Counter>,
    durations: Histogram,
    requests: Family<ApiRequest, Counter>,
    writes: Counter,
    undeclared: Family<OfKind, Gauge<i64, AtomicI64>>,
    rejected_statuses: Family<OfKind, Counter>,
    unserved: Family<OfKind, Gauge<i64, AtomicI64>>,
    denied: Family<InNamespace, Gauge<i64, AtomicI64>>,
    pub(super) queue_depth: Gauge<i64, AtomicI64>,
    delayed: Gauge<i64, AtomicI64>,
    subscriptions: Gauge<i64, AtomicI64>,
    tasks: Gauge<i64, AtomicI64>,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("skep_operator");
        let reconciles = Family::default();
        // From a tenth of a millisecond to half a minute.
        let durations = Histogram::new(exponential_buckets(0.0001, 3.0, 12));
        let requests = Family::default();
        let writes = Counter::default();
        let (queue_depth, delayed) = (Gauge::default(), Gauge::default());
        let (subscriptions, tasks) = (Gauge::default(), Gauge::default());
        registry.register("reconciles", "Reconciliations, by kind and result", reconciles.clone());
        registry.register("reconcile_duration_seconds", "Duration of reconciliations", durations.clone());
        registry.register(
            "api_requests",
            "Requests to the API server, by verb and resource",
            requests.clone(),
        );
        registry.register("writes", "Requests to the API server that write", writes.clone());
        registry.register("queue_depth", "Objects that wait to be reconciled", queue_depth.clone());
        registry.register("delayed", "Objects that wait for a retry or a planned time", delayed.clone());
        registry.register("subscriptions", "Objects that reconciliations depend on", subscriptions.clone());
        registry.register("tasks", "Tasks of the process", tasks.clone());
        let undeclared = Family::default();
        registry.register(
            "undeclared_status_fields",
            "Status fields that are left out because the CRD does not declare them",
            undeclared.clone(),
        );
        registry.register(
            "panics",
            "Panics: each ended one reconciliation or one task",
            skep_panics::COUNT.clone(),
        );
        let rejected_statuses = Family::default();
        registry.register(
            "rejected_statuses",
            "Statuses that the API server rejected",
            rejected_statuses.clone(),
        );
        let unserved = Family::default();
        registry.register(
            "unserved_kinds",
            "Kinds that the API server does not serve, because their CRD is not installed",
            unserved.clone(),
        );
        let denied = Family::default();
        registry.register(
            "denied_namespaces",
            "Namespaces that the operator may not list, so that nothing in them is reconciled",
            denied.clone(),
        );
        Self {
            registry,
            reconciles,
            durations,
            requests,
            writes,
            undeclared,
            rejected_statuses,
            unserved,
            denied,
            queue_depth,
            delayed,
            subscriptions,
            tasks,
        }
    }
}

impl Metrics {
    pub(super) fn record_reconcile(&self, kind: &'static str, succeeded: bool, duration: Duration) {
        let result = if succeeded { "success" } else { "error" };
        self.reconciles.get_or_create(&Reconcile { kind, result }).inc();
        self.durations.observe(duration.as_secs_f64());
    }

    pub(super) fn record_request(&self, verb: &'static str, resource: String) {
        if !matches!(verb, "get" | "list" | "watch" | DRY_RUN) {
            self.writes.inc();
        }
        self.requests.get_or_create(&ApiRequest { verb, resource }).inc();
    }

    pub(super) fn record_undeclared(&self, kind: &'static str, fields: usize) {
        self.undeclared.get_or_create(&OfKind { kind }).set(i64::try_from(fields).unwrap_or(i64::MAX));
    }

    pub(super) fn record_rejected_status(&self, kind: &'static str) {
        self.rejected_statuses.get_or_create(&OfKind { kind }).inc();
    }

    /// The metrics in the format of Prometheus, with the sizes that these parts have now.
    pub(super) fn text(&self, world: &World) -> String {
        let set = |gauge: &Gauge<i64, AtomicI64>, size: usize| {
            gauge.set(i64::try_from(size).unwrap_or(i64::MAX));
        };
        set(&self.delayed, world.queue().delayed());
        set(&self.subscriptions, world.subscriptions());
        set(&self.tasks, Handle::current().metrics().num_alive_tasks());
        // A kind that is served now has no series any more.
        self.unserved.clear();
        for kind in world.unserved() {
            self.unserved.get_or_create(&OfKind { kind: kind.kind }).set(1);
        }
        self.denied.clear();
        for namespace in world.denied() {
            self.denied.get_or_create(&InNamespace { namespace: namespace.into() }).set(1);
        }
        let mut text = String::new();
        // Writing to a string cannot fail.
        encode(&mut text, &self.registry).ok();
        text
    }
}
