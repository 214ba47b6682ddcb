//! The metrics of a virtual server about its tool search, with the names of ToolHive's.

use std::time::Duration;

use opentelemetry::metrics::{Counter, Histogram, Meter};
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter, family::Family, histogram},
    registry::{Registry, Unit},
};

use super::durations::BUCKETS;

/// The bounds of results: those that maxToolsToReturn may be near.
const COUNTS: [f64; 8] = [0.0, 1.0, 2.0, 5.0, 8.0, 10.0, 20.0, 50.0];
/// The bounds of percentages.
const PERCENTAGES: [f64; 9] = [0.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 100.0];

type Name = (&'static str, &'static str);
const FOUND: Name = ("toolhive_vmcp_optimizer_find_tool_requests", "Searches for tools");
const FIND_ERRORS: Name = ("toolhive_vmcp_optimizer_find_tool_errors", "Searches for tools that failed");
const FIND_DURATION: Name = ("toolhive_vmcp_optimizer_find_tool_duration", "Duration of searches for tools");
const RESULTS: Name = ("toolhive_vmcp_optimizer_find_tool_results", "Tools that a search found");
const SAVINGS: Name = (
    "toolhive_vmcp_optimizer_token_savings_percent",
    "Tokens that a search saves, compared with the list of tools",
);
const CALLED: Name = ("toolhive_vmcp_optimizer_call_tool_requests", "Calls of tools that were searched for");
const CALL_ERRORS: Name = ("toolhive_vmcp_optimizer_call_tool_errors", "Those that failed");
const UNKNOWN: Name = ("toolhive_vmcp_optimizer_call_tool_not_found", "Those whose tool does not exist");
const CALL_DURATION: Name = ("toolhive_vmcp_optimizer_call_tool_duration", "Duration of these calls");
const NO_VECTORS: Name = (
    "skep_vmcp_optimizer_embedding_errors",
    "Searches for which the embedding service made no vector: they used words only",
);

/// Something that the tool search has done.
#[derive(Clone, Copy, Debug)]
pub enum SearchEvent {
    /// It found so many tools, which saves so many percent of the tokens of the whole list.
    Found {
        /// How many tools were returned.
        results: usize,
        /// How many percent are saved.
        savings: f64,
        /// How long it took.
        took: Duration,
    },
    /// A search was rejected.
    NotFound {
        /// How long it took.
        took: Duration,
    },
    /// A tool was called by its name.
    Called {
        /// Whether the call failed or was rejected.
        has_failed: bool,
        /// How long it took.
        took: Duration,
    },
    /// The tool that was called does not exist.
    UnknownTool,
    /// The embedding service failed.
    NoVectors,
}

/// For a collector.
pub(super) struct Sent {
    found: Counter<u64>,
    find_errors: Counter<u64>,
    find_duration: Histogram<f64>,
    results: Histogram<f64>,
    savings: Histogram<f64>,
    called: Counter<u64>,
    call_errors: Counter<u64>,
    unknown: Counter<u64>,
    call_duration: Histogram<f64>,
    no_vectors: Counter<u64>,
}

impl Sent {
    pub(super) fn new(meter: &Meter) -> Self {
        let counter = |(name, what): Name| meter.u64_counter(name).with_description(what).build();
        let histogram = |(name, what): Name, unit: &'static str, bounds: &[f64]| {
            let histogram = meter.f64_histogram(name).with_unit(unit).with_description(what);
            histogram.with_boundaries(bounds.to_vec()).build()
        };
        Self {
            found: counter(FOUND),
            find_errors: counter(FIND_ERRORS),
            find_duration: histogram(FIND_DURATION, "s", &BUCKETS),
            results: histogram(RESULTS, "{tools}", &COUNTS),
            savings: histogram(SAVINGS, "%", &PERCENTAGES),
            called: counter(CALLED),
            call_errors: counter(CALL_ERRORS),
            unknown: counter(UNKNOWN),
            call_duration: histogram(CALL_DURATION, "s", &BUCKETS),
            no_vectors: counter(NO_VECTORS),
        }
    }

    pub(super) fn record(&self, event: SearchEvent) {
        match event {
            SearchEvent::Found { results, savings, took } => {
                self.found.add(1, &[]);
                self.find_duration.record(took.as_secs_f64(), &[]);
                self.results.record(results as f64, &[]);
                self.savings.record(savings, &[]);
            }
            SearchEvent::NotFound { took } => {
                self.found.add(1, &[]);
                self.find_errors.add(1, &[]);
                self.find_duration.record(took.as_secs_f64(), &[]);
            }
            SearchEvent::Called { has_failed, took } => {
                self.called.add(1, &[]);
                self.call_duration.record(took.as_secs_f64(), &[]);
                if has_failed {
                    self.call_errors.add(1, &[]);
                }
            }
            SearchEvent::UnknownTool => {
                self.unknown.add(1, &[]);
            }
            SearchEvent::NoVectors => self.no_vectors.add(1, &[]),
        }
    }
}

/// No labels.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Unlabelled {}

type Counts = Family<Unlabelled, counter::Counter>;
type Distribution = Family<Unlabelled, histogram::Histogram>;

/// For Prometheus.
pub(super) struct Scraped {
    found: Counts,
    find_errors: Counts,
    find_duration: Distribution,
    results: Distribution,
    savings: Distribution,
    called: Counts,
    call_errors: Counts,
    unknown: Counts,
    call_duration: Distribution,
    no_vectors: Counts,
}

impl Scraped {
    pub(super) fn new(registry: &mut Registry) -> Self {
        let durations: fn() -> histogram::Histogram = || histogram::Histogram::new(BUCKETS);
        let new = Self {
            found: Family::default(),
            find_errors: Family::default(),
            find_duration: Family::new_with_constructor(durations),
            results: Family::new_with_constructor(|| histogram::Histogram::new(COUNTS)),
            savings: Family::new_with_constructor(|| histogram::Histogram::new(PERCENTAGES)),
            called: Family::default(),
            call_errors: Family::default(),
            unknown: Family::default(),
            call_duration: Family::new_with_constructor(durations),
            no_vectors: Family::default(),
        };
        for ((name, help), counts) in [
            (FOUND, &new.found),
            (FIND_ERRORS, &new.find_errors),
            (CALLED, &new.called),
            (CALL_ERRORS, &new.call_errors),
            (UNKNOWN, &new.unknown),
            (NO_VECTORS, &new.no_vectors),
        ] {
            registry.register(name, help, counts.clone());
        }
        registry.register_with_unit(
            FIND_DURATION.0,
            FIND_DURATION.1,
            Unit::Seconds,
            new.find_duration.clone(),
        );
        registry.register_with_unit(
            CALL_DURATION.0,
            CALL_DURATION.1,
            Unit::Seconds,
            new.call_duration.clone(),
        );
        registry.register(RESULTS.0, RESULTS.1, new.results.clone());
        registry.register(SAVINGS.0, SAVINGS.1, new.savings.clone());
        new
    }

    pub(super) fn record(&self, event: SearchEvent) {
        let count = |counts: &Counts| {
            counts.get_or_create(&Unlabelled {}).inc();
        };
        let observe = |values: &Distribution, value: f64| values.get_or_create(&Unlabelled {}).observe(value);
        match event {
            SearchEvent::Found { results, savings, took } => {
                count(&self.found);
                observe(&self.find_duration, took.as_secs_f64());
                observe(&self.results, results as f64);
                observe(&self.savings, savings);
            }
            SearchEvent::NotFound { took } => {
                count(&self.found);
                count(&self.find_errors);
                observe(&self.find_duration, took.as_secs_f64());
            }
            SearchEvent::Called { has_failed, took } => {
                count(&self.called);
                observe(&self.call_duration, took.as_secs_f64());
                if has_failed {
                    count(&self.call_errors);
                }
            }
            SearchEvent::UnknownTool => {
                count(&self.unknown);
            }
            SearchEvent::NoVectors => count(&self.no_vectors),
        }
    }
}
