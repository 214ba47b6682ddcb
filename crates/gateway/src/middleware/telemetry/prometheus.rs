//! Metrics that Prometheus scrapes.

use std::fmt;

use opentelemetry_sdk::Resource;
use prometheus_client::{
    encoding::{EncodeLabelSet, text::encode},
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram, info::Info},
    registry::{Registry, Unit},
};

use super::{
    backends,
    durations::BUCKETS,
    labels::{Measured, Server},
    rate_limits, searches, workflows,
};
use crate::{faults, middleware::oauth_events};

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Request {
    method: &'static str,
    status_code: u16,
    status: &'static str,
    mcp_method: &'static str,
    mcp_resource_id: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Connection {
    connection_type: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ToolCall {
    tool: String,
    status: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Operation {
    mcp_method_name: &'static str,
    jsonrpc_protocol_version: &'static str,
    network_transport: &'static str,
    network_protocol_name: &'static str,
    network_protocol_version: &'static str,
    error_type: String,
    gen_ai_operation_name: &'static str,
    gen_ai_tool_name: String,
    gen_ai_prompt_name: String,
}

/// The metrics that can be scraped.
pub(super) struct Prometheus {
    registry: Registry,
    requests: Family<Request, Counter>,
    durations: Family<Request, Histogram>,
    active: Family<Connection, Gauge>,
    tool_calls: Family<ToolCall, Counter>,
    operations: Family<Operation, Histogram>,
    pub(super) rate_limits: rate_limits::Scraped,
    /// A virtual server has some.
    pub(super) backends: Option<backends::Scraped>,
    pub(super) workflows: Option<workflows::Scraped>,
    pub(super) searches: Option<searches::Scraped>,
    server: Server,
}

fn histogram() -> Histogram {
    Histogram::new(BUCKETS)
}

impl Prometheus {
    pub(super) fn new(resource: &Resource, server: Server, is_virtual: bool) -> Self {
        let requests = Family::default();
        let durations = Family::<Request, Histogram>::new_with_constructor(histogram);
        let active = Family::default();
        let tool_calls = Family::default();
        let operations = Family::<Operation, Histogram>::new_with_constructor(histogram);

        let mut registry = Registry::default();
        let about: Vec<_> =
            resource.iter().map(|(key, value)| (label_name(key.as_str()), value.to_string())).collect();
        registry.register("target", "The resource that is measured", Info::new(about));
        let help = "Duration of MCP operations";
        let operation = "mcp_server_operation_duration";
        registry.register_with_unit(operation, help, Unit::Seconds, operations.clone());
        let rate_limits = rate_limits::Scraped::new(&mut registry);
        let backends = is_virtual.then(|| backends::Scraped::new(&mut registry));
        let workflows = is_virtual.then(|| workflows::Scraped::new(&mut registry));
        let searches = is_virtual.then(|| searches::Scraped::new(&mut registry));
        let (name, help) = oauth_events::METRIC;
        registry.register(name, help, oauth_events::COUNTS.clone());
        for (name, help, counter) in faults::counters() {
            registry.register(name, help, counter.clone());
        }
        let name = ("server".into(), server.name.clone().into());
        let of_server = registry.sub_registry_with_label(name);
        of_server.register("toolhive_mcp_tool_calls", "Tool calls", tool_calls.clone());
        let of_transport = of_server.sub_registry_with_label(("transport".into(), server.transport.into()));
        of_transport.register("toolhive_mcp_requests", "Requests", requests.clone());
        let help = "Duration of requests";
        of_transport.register_with_unit(
            "toolhive_mcp_request_duration",
            help,
            Unit::Seconds,
            durations.clone(),
        );
        let help = "Requests and streams in flight";
        of_transport.register("toolhive_mcp_active_connections", help, active.clone());
        Self {
            registry,
            requests,
            durations,
            active,
            tool_calls,
            operations,
            rate_limits,
            backends,
            workflows,
            searches,
            server,
        }
    }

    /// All metrics, in the format of OpenMetrics.
    pub(super) fn page(&self) -> Result<String, fmt::Error> {
        let mut page = String::new();
        encode(&mut page, &self.registry)?;
        Ok(page)
    }

    pub(super) fn active(&self, change: i64, stream: bool) {
        let connection = Connection { connection_type: if stream { "sse" } else { "" } };
        self.active.get_or_create(&connection).inc_by(change);
    }

    pub(super) fn ended(&self, measured: &Measured<'_>) {
        let Measured { labels, took } = measured;
        let request = Request {
            method: labels.method,
            status_code: labels.status_code,
            status: labels.status,
            mcp_method: labels.mcp_method,
            mcp_resource_id: labels.resource.clone(),
        };
        self.requests.get_or_create(&request).inc();
        if let Some(tool) = labels.tool() {
            let call = ToolCall { tool: tool.to_owned(), status: labels.status };
            self.tool_calls.get_or_create(&call).inc();
        }
        let Some(took) = took.map(|took| took.as_secs_f64()) else { return };
        self.durations.get_or_create(&request).observe(took);
        if labels.mcp_method.is_empty() {
            return;
        }
        let protocol = self.server.network_protocol();
        let operation = Operation {
            mcp_method_name: labels.mcp_method,
            jsonrpc_protocol_version: "2.0",
            network_transport: self.server.network_transport(),
            network_protocol_name: protocol.unwrap_or_default(),
            network_protocol_version: if protocol.is_some() { "1.1" } else { "" },
            error_type: labels.error_type.clone().unwrap_or_default(),
            gen_ai_operation_name: if labels.tool().is_some() { "execute_tool" } else { "" },
            gen_ai_tool_name: labels.tool().unwrap_or_default().to_owned(),
            gen_ai_prompt_name: labels.prompt().unwrap_or_default().to_owned(),
        };
        self.operations.get_or_create(&operation).observe(took);
    }
}

/// The name of an attribute as that of a label.
fn label_name(key: &str) -> String {
    let fits = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let name: String = key.chars().map(fits).collect();
    if name.starts_with(|c: char| c.is_ascii_digit()) { format!("_{name}") } else { name }
}
