//! Metrics for a collector.

use opentelemetry::{
    KeyValue,
    metrics::{AsyncInstrument, Counter, Histogram, MeterProvider, UpDownCounter},
};
use opentelemetry_otlp::MetricExporter;
use opentelemetry_sdk::{
    Resource,
    metrics::{PeriodicReader, SdkMeterProvider},
};
use skep_config::run_config;

use super::{
    SCOPE, backends,
    collector::Collector,
    durations::BUCKETS,
    labels::{Measured, Server},
    rate_limits, searches,
    settings::{address, wrong},
    workflows,
};
use crate::{ConfigError, faults, limits, middleware::oauth_events};

/// The instruments, and what sends their values on.
pub(super) struct Metrics {
    provider: SdkMeterProvider,
    requests: Counter<u64>,
    durations: Histogram<f64>,
    active: UpDownCounter<i64>,
    tool_calls: Counter<u64>,
    operations: Histogram<f64>,
    pub(super) rate_limits: rate_limits::Sent,
    /// A virtual server has some.
    pub(super) backends: Option<backends::Sent>,
    pub(super) workflows: Option<workflows::Sent>,
    pub(super) searches: Option<searches::Sent>,
    server: Server,
}

impl Metrics {
    pub(super) fn new(
        config: &run_config::Telemetry,
        collector: &Collector,
        resource: Resource,
        server: Server,
        is_virtual: bool,
    ) -> Result<Self, ConfigError> {
        let exporter = collector.exporter(MetricExporter::builder().with_http(), address(config, "metrics")?);
        let exporter = exporter.build().map_err(|error| wrong(&error))?;
        let reader = PeriodicReader::builder(exporter).with_interval(limits::METRICS_INTERVAL).build();
        let provider = SdkMeterProvider::builder().with_reader(reader).with_resource(resource).build();
        let meter = provider.meter(SCOPE);
        let seconds = |name: &'static str, what: &'static str| {
            let histogram = meter.f64_histogram(name).with_unit("s").with_description(what);
            histogram.with_boundaries(BUCKETS.to_vec()).build()
        };
        let (name, help) = oauth_events::METRIC;
        let observe = |observer: &dyn AsyncInstrument<u64>| {
            for counted in oauth_events::all() {
                // One that has never happened is not sent.
                if let Some(count) = oauth_events::COUNTS.get(&counted) {
                    let labels =
                        [KeyValue::new("event", counted.event), KeyValue::new("outcome", counted.outcome)];
                    observer.observe(count.get(), &labels);
                }
            }
        };
        meter.u64_observable_counter(name).with_description(help).with_callback(observe).build();
        for (name, help, counter) in faults::counters() {
            let observe = move |observer: &dyn AsyncInstrument<u64>| observer.observe(counter.get(), &[]);
            meter.u64_observable_counter(name).with_description(help).with_callback(observe).build();
        }
        Ok(Self {
            requests: meter.u64_counter("toolhive_mcp_requests").with_description("Requests").build(),
            durations: seconds("toolhive_mcp_request_duration", "Duration of requests"),
            active: meter
                .i64_up_down_counter("toolhive_mcp_active_connections")
                .with_description("Requests and streams in flight")
                .build(),
            tool_calls: meter.u64_counter("toolhive_mcp_tool_calls").with_description("Tool calls").build(),
            operations: seconds("mcp.server.operation.duration", "Duration of MCP operations"),
            rate_limits: rate_limits::Sent::new(&meter),
            backends: is_virtual.then(|| backends::Sent::new(&meter)),
            workflows: is_virtual.then(|| workflows::Sent::new(&meter)),
            searches: is_virtual.then(|| searches::Sent::new(&meter)),
            provider,
            server,
        })
    }

    pub(super) fn active(&self, change: i64, stream: bool) {
        let mut attributes = self.server_attributes();
        if stream {
            attributes.push(KeyValue::new("connection_type", "sse"));
        }
        self.active.add(change, &attributes);
    }

    pub(super) fn ended(&self, measured: &Measured<'_>) {
        let Measured { labels, took } = measured;
        let mut attributes = self.server_attributes();
        attributes.extend([
            KeyValue::new("method", labels.method),
            KeyValue::new("status_code", labels.status_code.to_string()),
            KeyValue::new("status", labels.status),
            KeyValue::new("mcp_method", labels.mcp_method),
            KeyValue::new("mcp_resource_id", labels.resource.clone()),
        ]);
        self.requests.add(1, &attributes);
        if let Some(tool) = labels.tool() {
            let attributes = [
                KeyValue::new("server", self.server.name.clone()),
                KeyValue::new("tool", tool.to_owned()),
                KeyValue::new("status", labels.status),
            ];
            self.tool_calls.add(1, &attributes);
        }
        let Some(took) = took.map(|took| took.as_secs_f64()) else { return };
        self.durations.record(took, &attributes);
        if !labels.mcp_method.is_empty() {
            self.operations.record(took, &self.operation(measured));
        }
    }

    fn operation(&self, measured: &Measured<'_>) -> Vec<KeyValue> {
        let labels = measured.labels;
        let mut attributes = vec![
            KeyValue::new("mcp.method.name", labels.mcp_method),
            KeyValue::new("jsonrpc.protocol.version", "2.0"),
            KeyValue::new("network.transport", self.server.network_transport()),
        ];
        if let Some(protocol) = self.server.network_protocol() {
            attributes.push(KeyValue::new("network.protocol.name", protocol));
            attributes.push(KeyValue::new("network.protocol.version", "1.1"));
        }
        let optional = [
            ("error.type", labels.error_type.as_deref()),
            ("gen_ai.operation.name", labels.tool().map(|_| "execute_tool")),
            ("gen_ai.tool.name", labels.tool()),
            ("gen_ai.prompt.name", labels.prompt()),
        ];
        let optional =
            optional.into_iter().filter_map(|(key, value)| Some(KeyValue::new(key, value?.to_owned())));
        attributes.extend(optional);
        attributes
    }

    fn server_attributes(&self) -> Vec<KeyValue> {
        vec![
            KeyValue::new("server", self.server.name.clone()),
            KeyValue::new("transport", self.server.transport),
        ]
    }

    /// Sends what is queued. It may block for as long as the collector takes.
    pub(super) fn shut_down(&self) {
        self.provider.shutdown().ok();
    }
}
