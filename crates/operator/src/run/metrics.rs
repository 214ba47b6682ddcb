//! What the operator counts.

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

use crate::requests::TRIED;

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

/// The metrics of one process.
pub(super) struct Metrics {
    pub(super) registry: Registry,
    reconciles: Family<Reconcile, Counter>,
    durations: Histogram,
    requests: Family<ApiRequest, Counter>,
    writes: Counter,
    pub(super) queue_depth: Gauge<i64, AtomicI64>,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("skep_operator");
        let reconciles = Family::default();
        // From a tenth of a millisecond to half a minute.
        let durations = Histogram::new(exponential_buckets(0.0001, 3.0, 12));
        let requests = Family::default();
        let writes = Counter::default();
        let queue_depth = Gauge::default();
        registry.register(
            "reconciles",
            "Objects that were worked on, by kind and result",
            reconciles.clone(),
        );
        registry.register(
            "reconcile_duration_seconds",
            "How long the work on an object took",
            durations.clone(),
        );
        registry.register(
            "api_requests",
            "Requests to the API server, by verb and resource",
            requests.clone(),
        );
        registry.register("writes", "Requests to the API server that may change something", writes.clone());
        registry.register("queue_depth", "Objects that wait to be worked on", queue_depth.clone());
        Self { registry, reconciles, durations, requests, writes, queue_depth }
    }
}

impl Metrics {
    pub(super) fn reconciled(&self, kind: &'static str, succeeded: bool, duration: Duration) {
        let result = if succeeded { "success" } else { "error" };
        self.reconciles.get_or_create(&Reconcile { kind, result }).inc();
        self.durations.observe(duration.as_secs_f64());
    }

    pub(super) fn requested(&self, verb: &'static str, resource: String) {
        if !matches!(verb, "get" | "list" | "watch" | TRIED) {
            self.writes.inc();
        }
        self.requests.get_or_create(&ApiRequest { verb, resource }).inc();
    }

    /// The metrics in the format of Prometheus.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        encode(&mut text, &self.registry).ok();
        text
    }
}
