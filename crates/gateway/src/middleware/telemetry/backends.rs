//! The metrics of a virtual server about its backends, with the names and labels of ToolHive's.

use std::{
    collections::HashSet,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use opentelemetry::{
    KeyValue,
    metrics::{Counter, Gauge, Histogram, Meter},
};
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter, family::Family, gauge, histogram},
    registry::{Registry, Unit},
};

use super::{durations::BUCKETS, names::Names};

const DISCOVERED: (&str, &str) = ("toolhive_vmcp_backends_discovered", "Backends of the virtual server");
const HEALTH: (&str, &str) =
    ("skep_vmcp_backend_health", "1 for the health that a backend of the virtual server has");
const CIRCUIT: (&str, &str) =
    ("skep_vmcp_backend_circuit", "1 for the state that the circuit breaker of a backend has");
const REQUESTS: (&str, &str) = ("toolhive_vmcp_backend_requests", "Requests to backends");
const ERRORS: (&str, &str) = ("toolhive_vmcp_backend_errors", "Requests to backends that failed");
const DURATION: (&str, &str) =
    ("toolhive_vmcp_backend_requests_duration", "Duration of requests to backends");
const OPERATION: (&str, &str) = ("mcp_client_operation_duration", "Duration of MCP operations as a client");
/// The name that OpenTelemetry has for it.
const OPERATION_SENT: &str = "mcp.client.operation.duration";

/// The state of a backend.
#[derive(Clone, Copy, Debug)]
pub struct BackendState<'a> {
    /// The name of the backend.
    pub backend: &'a str,
    /// Its health.
    pub health: &'static str,
    /// The state of its circuit breaker.
    pub circuit: &'static str,
}

/// The labels of one state.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StateLabels {
    target_workload_name: String,
    state: &'static str,
}

impl StateLabels {
    fn new(backend: &str, state: &'static str) -> Self {
        Self { target_workload_name: backend.to_owned(), state }
    }

    fn attributes(&self) -> [KeyValue; 2] {
        [
            KeyValue::new("target.workload_name", self.target_workload_name.clone()),
            KeyValue::new("state", self.state),
        ]
    }
}

/// The series that are 1. Others have been, and are 0 for a collector, which does not forget them by itself.
#[derive(Default)]
struct States(Mutex<HashSet<StateLabels>>);

impl States {
    /// Has these instead, and returns those that are no longer.
    fn replace(&self, states: HashSet<StateLabels>) -> Vec<StateLabels> {
        let mut current = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *current, states);
        before.into_iter().filter(|state| !current.contains(state)).collect()
    }
}

fn healths(states: &[BackendState<'_>]) -> HashSet<StateLabels> {
    states.iter().map(|state| StateLabels::new(state.backend, state.health)).collect()
}

fn circuits(states: &[BackendState<'_>]) -> HashSet<StateLabels> {
    states.iter().map(|state| StateLabels::new(state.backend, state.circuit)).collect()
}

/// A request to a backend that has ended.
#[derive(Clone, Copy, Debug)]
pub struct BackendRequest<'a> {
    /// The name of the backend.
    pub backend: &'a str,
    /// Its address.
    pub url: &'a str,
    /// Its transport.
    pub transport: &'static str,
    /// The revision of MCP that is spoken to it.
    pub revision: &'static str,
    /// The method of MCP.
    pub method: &'static str,
    /// The tool that was called, as the backend knows it.
    pub tool: Option<&'a str>,
    /// Whether the caller is known.
    pub is_authenticated: bool,
    /// Whether it failed.
    pub has_failed: bool,
    /// How long it took.
    pub took: Duration,
}

/// The labels of a request to a backend.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    action: &'static str,
    auth_authenticated: String,
    gen_ai_tool_name: String,
    mcp_method_name: &'static str,
    mcp_protocol_revision: &'static str,
    target_base_url: String,
    target_transport_type: &'static str,
    target_workload_id: String,
    target_workload_name: String,
    tool_name: String,
}

impl Labels {
    fn new(request: &BackendRequest<'_>, names: &Names) -> Self {
        let action = match request.method {
            "tools/call" => "call_tool",
            "resources/read" => "read_resource",
            "prompts/get" => "get_prompt",
            "completion/complete" => "complete",
            _ => "other",
        };
        // The backend has this tool, or the request would not have been sent.
        let tool = request.tool.map(|tool| names.label(tool, true).into_owned()).unwrap_or_default();
        Self {
            action,
            auth_authenticated: request.is_authenticated.to_string(),
            gen_ai_tool_name: tool.clone(),
            mcp_method_name: request.method,
            mcp_protocol_revision: request.revision,
            target_base_url: request.url.to_owned(),
            target_transport_type: request.transport,
            target_workload_id: request.backend.to_owned(),
            target_workload_name: request.backend.to_owned(),
            tool_name: tool,
        }
    }

    fn attributes(&self) -> [KeyValue; 10] {
        [
            KeyValue::new("action", self.action),
            KeyValue::new("auth.authenticated", self.auth_authenticated.clone()),
            KeyValue::new("gen_ai.tool.name", self.gen_ai_tool_name.clone()),
            KeyValue::new("mcp.method.name", self.mcp_method_name),
            KeyValue::new("mcp.protocol.revision", self.mcp_protocol_revision),
            KeyValue::new("target.base_url", self.target_base_url.clone()),
            KeyValue::new("target.transport_type", self.target_transport_type),
            KeyValue::new("target.workload_id", self.target_workload_id.clone()),
            KeyValue::new("target.workload_name", self.target_workload_name.clone()),
            KeyValue::new("tool_name", self.tool_name.clone()),
        ]
    }
}

/// For a collector.
pub(super) struct Sent {
    discovered: Gauge<u64>,
    health: (Gauge<u64>, States),
    circuit: (Gauge<u64>, States),
    requests: Counter<u64>,
    errors: Counter<u64>,
    duration: Histogram<f64>,
    operation: Histogram<f64>,
    names: Names,
}

impl Sent {
    pub(super) fn new(meter: &Meter) -> Self {
        let counter = |(name, what)| meter.u64_counter(name).with_description(what).build();
        let gauge = |(name, what)| meter.u64_gauge(name).with_description(what).build();
        let seconds = |name: &'static str, what: &'static str| {
            let histogram = meter.f64_histogram(name).with_unit("s").with_description(what);
            histogram.with_boundaries(BUCKETS.to_vec()).build()
        };
        Self {
            discovered: gauge(DISCOVERED),
            health: (gauge(HEALTH), States::default()),
            circuit: (gauge(CIRCUIT), States::default()),
            requests: counter(REQUESTS),
            errors: counter(ERRORS),
            duration: seconds(DURATION.0, DURATION.1),
            operation: seconds(OPERATION_SENT, OPERATION.1),
            names: Names::default(),
        }
    }

    pub(super) fn states(&self, states: &[BackendState<'_>]) {
        self.discovered.record(states.len() as u64, &[]);
        let all = [(&self.health, healths(states)), (&self.circuit, circuits(states))];
        for ((gauge, known), states) in all {
            states.iter().for_each(|state| gauge.record(1, &state.attributes()));
            known.replace(states).iter().for_each(|state| gauge.record(0, &state.attributes()));
        }
    }

    pub(super) fn ended(&self, request: &BackendRequest<'_>) {
        let attributes = Labels::new(request, &self.names).attributes();
        self.requests.add(1, &attributes);
        if request.has_failed {
            self.errors.add(1, &attributes);
        }
        self.duration.record(request.took.as_secs_f64(), &attributes);
        let operation = [KeyValue::new("mcp.method.name", request.method)];
        self.operation.record(request.took.as_secs_f64(), &operation);
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Operation {
    mcp_method_name: &'static str,
}

/// For Prometheus.
pub(super) struct Scraped {
    discovered: gauge::Gauge,
    health: (Family<StateLabels, gauge::Gauge>, States),
    circuit: (Family<StateLabels, gauge::Gauge>, States),
    requests: Family<Labels, counter::Counter>,
    errors: Family<Labels, counter::Counter>,
    duration: Family<Labels, histogram::Histogram>,
    operation: Family<Operation, histogram::Histogram>,
    names: Names,
}

impl Scraped {
    pub(super) fn new(registry: &mut Registry) -> Self {
        let histogram = || histogram::Histogram::new(BUCKETS);
        let new = Self {
            discovered: gauge::Gauge::default(),
            health: Default::default(),
            circuit: Default::default(),
            requests: Family::default(),
            errors: Family::default(),
            duration: Family::new_with_constructor(histogram),
            operation: Family::new_with_constructor(histogram),
            names: Names::default(),
        };
        registry.register(DISCOVERED.0, DISCOVERED.1, new.discovered.clone());
        registry.register(HEALTH.0, HEALTH.1, new.health.0.clone());
        registry.register(CIRCUIT.0, CIRCUIT.1, new.circuit.0.clone());
        registry.register(REQUESTS.0, REQUESTS.1, new.requests.clone());
        registry.register(ERRORS.0, ERRORS.1, new.errors.clone());
        registry.register_with_unit(DURATION.0, DURATION.1, Unit::Seconds, new.duration.clone());
        registry.register_with_unit(OPERATION.0, OPERATION.1, Unit::Seconds, new.operation.clone());
        new
    }

    pub(super) fn states(&self, states: &[BackendState<'_>]) {
        self.discovered.set(i64::try_from(states.len()).unwrap_or(i64::MAX));
        let all = [(&self.health, healths(states)), (&self.circuit, circuits(states))];
        for ((family, known), states) in all {
            for state in &states {
                family.get_or_create(state).set(1);
            }
            for state in known.replace(states) {
                family.remove(&state);
            }
        }
    }

    pub(super) fn ended(&self, request: &BackendRequest<'_>) {
        let labels = Labels::new(request, &self.names);
        self.requests.get_or_create(&labels).inc();
        if request.has_failed {
            self.errors.get_or_create(&labels).inc();
        }
        self.duration.get_or_create(&labels).observe(request.took.as_secs_f64());
        let operation = Operation { mcp_method_name: request.method };
        self.operation.get_or_create(&operation).observe(request.took.as_secs_f64());
    }
}
