//! The metrics of rate limits, with the names and labels of ToolHive's.

use std::time::Duration;

use opentelemetry::{
    KeyValue,
    metrics::{Counter, Histogram, Meter},
};
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter, family::Family, histogram},
    registry::{Registry, Unit},
};
use skep_redis::Cause;

use super::durations::BUCKETS;
use crate::message::{Checked, Decision, RateLimited, Scope};

const DECISIONS: (&str, &str) = ("toolhive_rate_limit_decisions", "Decisions of rate limits on tool calls");
const REDIS_ERRORS: (&str, &str) =
    ("toolhive_rate_limit_redis_errors", "Errors of the Redis with the token buckets");
const FAIL_OPEN: (&str, &str) =
    ("toolhive_rate_limit_fail_open", "Tool calls that were allowed because Redis was unavailable");
const LATENCY: (&str, &str) = ("toolhive_rate_limit_check_latency", "Duration of rate limit checks");

fn scope_labels(scope: Scope) -> (&'static str, &'static str) {
    match scope {
        Scope::Shared => ("shared", "server"),
        Scope::SharedTool => ("shared", "tool"),
        Scope::PerUser => ("per_user", "server"),
        Scope::PerUserTool => ("per_user", "tool"),
    }
}

fn decision_label(decision: Decision) -> &'static str {
    match decision {
        Decision::Allowed => "allowed",
        Decision::Rejected => "rejected",
    }
}

fn error_type(cause: Cause) -> &'static str {
    match cause {
        Cause::Timeout => "timeout",
        Cause::Connection => "connection",
        Cause::Auth => "auth",
        Cause::Other => "other",
    }
}

/// For a collector.
pub(super) struct Sent {
    decisions: Counter<u64>,
    redis_errors: Counter<u64>,
    fail_open: Counter<u64>,
    latency: Histogram<f64>,
}

impl Sent {
    pub(super) fn new(meter: &Meter) -> Self {
        let counter = |(name, what)| meter.u64_counter(name).with_description(what).build();
        let (name, what) = LATENCY;
        let latency = meter.f64_histogram(name).with_unit("s").with_description(what);
        Self {
            decisions: counter(DECISIONS),
            redis_errors: counter(REDIS_ERRORS),
            fail_open: counter(FAIL_OPEN),
            latency: latency.with_boundaries(BUCKETS.to_vec()).build(),
        }
    }

    pub(super) fn checked(&self, about: &RateLimited, checked: &Checked<'_>, took: Duration) {
        let RateLimited { namespace, server } = about;
        let with = |more: &[(&'static str, &'static str)]| -> Vec<KeyValue> {
            let about = [("namespace", namespace), ("server", server)];
            let about = about.map(|(key, value)| KeyValue::new(key, value.clone()));
            about.into_iter().chain(more.iter().map(|(key, value)| KeyValue::new(*key, *value))).collect()
        };
        self.latency.record(took.as_secs_f64(), &with(&[]));
        match checked {
            Checked::Decided(decision, scopes) => {
                for (scope, operation) in scopes.iter().copied().map(scope_labels) {
                    let decided = [
                        ("decision", decision_label(*decision)),
                        ("scope", scope),
                        ("operation_type", operation),
                    ];
                    self.decisions.add(1, &with(&decided));
                }
            }
            Checked::Unknown(cause) => {
                self.redis_errors.add(1, &with(&[("error_type", error_type(*cause))]));
                self.fail_open.add(1, &with(&[]));
            }
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Decided {
    namespace: String,
    server: String,
    decision: &'static str,
    scope: &'static str,
    operation_type: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Failed {
    namespace: String,
    server: String,
    error_type: &'static str,
}

/// For Prometheus.
pub(super) struct Scraped {
    decisions: Family<Decided, counter::Counter>,
    redis_errors: Family<Failed, counter::Counter>,
    fail_open: Family<RateLimited, counter::Counter>,
    latency: Family<RateLimited, histogram::Histogram>,
}

impl Scraped {
    pub(super) fn new(registry: &mut Registry) -> Self {
        let new = Self {
            decisions: Family::default(),
            redis_errors: Family::default(),
            fail_open: Family::default(),
            latency: Family::new_with_constructor(|| histogram::Histogram::new(BUCKETS)),
        };
        registry.register(DECISIONS.0, DECISIONS.1, new.decisions.clone());
        registry.register(REDIS_ERRORS.0, REDIS_ERRORS.1, new.redis_errors.clone());
        registry.register(FAIL_OPEN.0, FAIL_OPEN.1, new.fail_open.clone());
        registry.register_with_unit(LATENCY.0, LATENCY.1, Unit::Seconds, new.latency.clone());
        new
    }

    pub(super) fn checked(&self, about: &RateLimited, checked: &Checked<'_>, took: Duration) {
        let RateLimited { namespace, server } = about.clone();
        self.latency.get_or_create(about).observe(took.as_secs_f64());
        match checked {
            Checked::Decided(decision, scopes) => {
                for (scope, operation_type) in scopes.iter().copied().map(scope_labels) {
                    let (namespace, server) = (namespace.clone(), server.clone());
                    let decision = decision_label(*decision);
                    let decided = Decided { namespace, server, decision, scope, operation_type };
                    self.decisions.get_or_create(&decided).inc();
                }
            }
            Checked::Unknown(cause) => {
                let failed = Failed { namespace, server, error_type: error_type(*cause) };
                self.redis_errors.get_or_create(&failed).inc();
                self.fail_open.get_or_create(about).inc();
            }
        }
    }
}
