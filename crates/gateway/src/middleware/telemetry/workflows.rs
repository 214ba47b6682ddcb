//! The metrics of a virtual server about its workflows, with the names and labels of ToolHive's.

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

use super::durations::BUCKETS;

const EXECUTIONS: (&str, &str) = ("toolhive_vmcp_workflow_executions", "Runs of workflows");
const ERRORS: (&str, &str) = ("toolhive_vmcp_workflow_errors", "Runs of workflows that failed");
const DURATION: (&str, &str) = ("toolhive_vmcp_workflow_duration", "Duration of runs of workflows");

/// A run of a workflow that has ended.
#[derive(Clone, Copy, Debug)]
pub struct WorkflowRun<'a> {
    /// The name of the composite tool.
    pub workflow: &'a str,
    /// Whether it failed.
    pub has_failed: bool,
    /// How long it took.
    pub took: Duration,
}

/// For a collector.
pub(super) struct Sent {
    executions: Counter<u64>,
    errors: Counter<u64>,
    duration: Histogram<f64>,
}

impl Sent {
    pub(super) fn new(meter: &Meter) -> Self {
        let counter = |(name, what)| meter.u64_counter(name).with_description(what).build();
        let duration = meter.f64_histogram(DURATION.0).with_unit("s").with_description(DURATION.1);
        Self {
            executions: counter(EXECUTIONS),
            errors: counter(ERRORS),
            duration: duration.with_boundaries(BUCKETS.to_vec()).build(),
        }
    }

    pub(super) fn ended(&self, run: &WorkflowRun<'_>) {
        let attributes = [KeyValue::new("workflow.name", run.workflow.to_owned())];
        self.executions.add(1, &attributes);
        if run.has_failed {
            self.errors.add(1, &attributes);
        }
        self.duration.record(run.took.as_secs_f64(), &attributes);
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    workflow_name: String,
}

/// For Prometheus.
pub(super) struct Scraped {
    executions: Family<Labels, counter::Counter>,
    errors: Family<Labels, counter::Counter>,
    duration: Family<Labels, histogram::Histogram>,
}

impl Scraped {
    pub(super) fn new(registry: &mut Registry) -> Self {
        let histogram = || histogram::Histogram::new(BUCKETS);
        let new = Self {
            executions: Family::default(),
            errors: Family::default(),
            duration: Family::new_with_constructor(histogram),
        };
        registry.register(EXECUTIONS.0, EXECUTIONS.1, new.executions.clone());
        registry.register(ERRORS.0, ERRORS.1, new.errors.clone());
        registry.register_with_unit(DURATION.0, DURATION.1, Unit::Seconds, new.duration.clone());
        new
    }

    pub(super) fn ended(&self, run: &WorkflowRun<'_>) {
        let labels = Labels { workflow_name: run.workflow.to_owned() };
        self.executions.get_or_create(&labels).inc();
        if run.has_failed {
            self.errors.get_or_create(&labels).inc();
        }
        self.duration.get_or_create(&labels).observe(run.took.as_secs_f64());
    }
}
