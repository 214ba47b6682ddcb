//! Traces: one span for each request.
//!
//! Names of attributes are those of OpenTelemetry's conventions for MCP and HTTP. Arguments, bodies, tokens and queries
//! are in none of them.

use std::time::{Duration, SystemTime};

use http::{HeaderMap, header};
use opentelemetry::{
    Context, KeyValue,
    propagation::{Extractor, TextMapPropagator},
    trace::{Span as _, SpanKind, Status, Tracer, TracerProvider},
};
use opentelemetry_otlp::SpanExporter;
use opentelemetry_sdk::{
    Resource,
    propagation::TraceContextPropagator,
    trace::{BatchConfigBuilder, BatchSpanProcessor, Sampler, SdkTracer, SdkTracerProvider, Span},
};
use skep_config::run_config;
use skep_mcp::{
    SessionId, TargetKind,
    header::{MCP_PROTOCOL_VERSION, MCP_SESSION_ID},
};

use super::{
    SCOPE,
    collector::Collector,
    labels::{Server, http_method, target},
    outcome::Failure,
    settings::{self, address, sampling_rate, wrong},
};
use crate::{ConfigError, limits, message::Exchange, truncate::truncate};

/// Makes spans, and sends them on.
pub(super) struct Spans {
    provider: SdkTracerProvider,
    tracer: SdkTracer,
    propagator: TraceContextPropagator,
    /// The attributes of every span.
    always: Vec<KeyValue>,
    legacy: bool,
    server: Server,
}

impl Spans {
    pub(super) fn new(
        config: &run_config::Telemetry,
        collector: &Collector,
        resource: Resource,
        server: Server,
    ) -> Result<Self, ConfigError> {
        let exporter = collector.exporter(SpanExporter::builder().with_http(), address(config, "traces")?);
        let exporter = exporter.build().map_err(|error| wrong(&error))?;
        let batches = BatchConfigBuilder::default()
            .with_max_queue_size(limits::SPANS)
            .with_max_export_batch_size(limits::SPANS_AT_ONCE)
            .with_scheduled_delay(limits::SPANS_INTERVAL)
            .build();
        let sampler = Sampler::ParentBased(Box::new(Sampler::TraceIdRatioBased(sampling_rate(config)?)));
        let provider = SdkTracerProvider::builder()
            .with_sampler(sampler)
            .with_span_processor(BatchSpanProcessor::builder(exporter).with_batch_config(batches).build())
            .with_resource(resource)
            .build();
        let mut always = settings::environment(config, &settings::variables());
        always.push(KeyValue::new("mcp.server.name", server.name.clone()));
        always.push(KeyValue::new("network.transport", server.network_transport()));
        if let Some(protocol) = server.network_protocol() {
            always.push(KeyValue::new("network.protocol.name", protocol));
            always.push(KeyValue::new("network.protocol.version", "1.1"));
        }
        Ok(Self {
            tracer: provider.tracer(SCOPE),
            provider,
            propagator: TraceContextPropagator::new(),
            always,
            legacy: config.use_legacy_attributes,
            server,
        })
    }

    /// Starts the span of a request, if it is sampled.
    pub(super) fn start(&self, exchange: &Exchange) -> Option<Span> {
        let start = SystemTime::now().checked_sub(exchange.started.elapsed()).unwrap_or_else(SystemTime::now);
        let builder =
            self.tracer.span_builder(name(exchange)).with_kind(SpanKind::Server).with_start_time(start);
        let mut span = self.tracer.build_with_context(builder, &self.parent(exchange));
        if !span.is_recording() {
            return None;
        }
        span.set_attributes(self.always.iter().cloned());
        span.set_attributes(http_attributes(exchange));
        span.set_attributes(mcp_attributes(exchange));
        if self.legacy {
            span.set_attributes(self.legacy_attributes(exchange));
        }
        Some(span)
    }

    /// Ends the span of a stream that has started: the stream may last for days.
    pub(super) fn end_of_stream(&self, mut span: Span) {
        span.update_name("sse.connection_established");
        span.set_attribute(KeyValue::new("sse.event_type", "connection_established"));
        span.set_status(Status::Ok);
        span.end();
    }

    /// Ends a span.
    pub(super) fn end(&self, mut span: Span, status_code: Option<u16>, bytes: u64, failure: Option<Failure>) {
        let size = i64::try_from(bytes).unwrap_or(i64::MAX);
        if let Some(status_code) = status_code.map(i64::from) {
            span.set_attribute(KeyValue::new("http.response.status_code", status_code));
            span.set_attribute(KeyValue::new("http.response.body.size", size));
            if self.legacy {
                span.set_attribute(KeyValue::new("http.status_code", status_code));
                span.set_attribute(KeyValue::new("http.response_content_length", size));
            }
        }
        if let Some(Failure::Rpc(code)) = failure {
            span.set_attribute(KeyValue::new("rpc.response.status_code", code.to_string()));
        }
        match (failure, failure.and_then(Failure::error_type)) {
            (None, _) => span.set_status(Status::Ok),
            // A client's error is not an error of the server span (OpenTelemetry's conventions for HTTP).
            (Some(_), None) => {}
            (Some(_), Some(error_type)) => {
                span.set_attribute(KeyValue::new("error.type", error_type));
                // Without a description: the error of the response may quote the request.
                span.set_status(Status::error(""));
            }
        }
        span.end();
    }

    /// The caller's span, if the request names it. The message takes precedence over the header: a gateway on the
    /// way only knows the header.
    fn parent(&self, exchange: &Exchange) -> Context {
        let root = Context::new();
        if let Some(message) = &exchange.message
            && let Ok(envelope) = message.envelope()
            && let Some(parent) = envelope.meta().trace_parent()
        {
            let caller = CallerSpan {
                parent: parent.decoded().into_owned(),
                state: envelope.meta().trace_state().map(|state| state.decoded().into_owned()),
            };
            return self.propagator.extract_with_context(&root, &caller);
        }
        let header = |name| text(&exchange.headers, name).map(str::to_owned);
        match header(TRACE_PARENT) {
            Some(parent) => self
                .propagator
                .extract_with_context(&root, &CallerSpan { parent, state: header(TRACE_STATE) }),
            None => root,
        }
    }

    fn legacy_attributes(&self, exchange: &Exchange) -> Vec<KeyValue> {
        let mut attributes = vec![
            KeyValue::new("http.method", http_method(&exchange.method)),
            KeyValue::new("http.url", full(exchange)),
            KeyValue::new("http.scheme", "http"),
            KeyValue::new("http.target", truncate(exchange.path.path()).into_owned()),
            KeyValue::new("http.request_content_length", exchange.body.len().to_string()),
            KeyValue::new("mcp.transport", self.server.transport),
        ];
        let optional =
            [("http.host", header::HOST.as_str()), ("http.user_agent", header::USER_AGENT.as_str())];
        attributes.extend(optional.into_iter().filter_map(|(key, name)| {
            Some(KeyValue::new(key, truncate(text(&exchange.headers, name)?).into_owned()))
        }));
        let Some(message) = exchange.message.as_ref().filter(|message| message.method.is_some()) else {
            return attributes;
        };
        attributes.push(KeyValue::new("mcp.method", truncate(&message.method_name).into_owned()));
        attributes.push(KeyValue::new("rpc.system", "jsonrpc"));
        attributes.push(KeyValue::new("rpc.service", "mcp"));
        if let Some(id) = id(exchange) {
            attributes.push(KeyValue::new("mcp.request.id", id));
        }
        if let Some((kind, name)) = target(message) {
            let key = match kind {
                TargetKind::Tool => "mcp.tool.name",
                TargetKind::Prompt => "mcp.prompt.name",
                _ => "mcp.resource.id",
            };
            attributes.push(KeyValue::new(key, name));
        }
        attributes
    }

    /// Sends what is queued. It may block for as long as the collector takes.
    pub(super) fn shut_down(&self, time: Duration) {
        self.provider.shutdown_with_timeout(time).ok();
    }
}

const TRACE_PARENT: &str = "traceparent";
const TRACE_STATE: &str = "tracestate";

/// The caller's own span, as the request names it.
struct CallerSpan {
    parent: String,
    state: Option<String>,
}

impl Extractor for CallerSpan {
    fn get(&self, key: &str) -> Option<&str> {
        match key {
            TRACE_PARENT => Some(&self.parent),
            TRACE_STATE => self.state.as_deref().filter(|state| state.len() <= limits::TRACE_STATE),
            _ => None,
        }
    }

    fn keys(&self) -> Vec<&str> {
        vec![TRACE_PARENT, TRACE_STATE]
    }
}

/// The method, and its target.
fn name(exchange: &Exchange) -> String {
    match exchange.message.as_ref().filter(|message| message.method.is_some()) {
        None => format!("{} {}", http_method(&exchange.method), truncate(exchange.path.path())),
        Some(message) => match target(message) {
            Some((_, target)) => format!("{} {target}", truncate(&message.method_name)),
            None => truncate(&message.method_name).into_owned(),
        },
    }
}

fn http_attributes(exchange: &Exchange) -> Vec<KeyValue> {
    let size = i64::try_from(exchange.body.len()).unwrap_or(i64::MAX);
    let mut attributes = vec![
        KeyValue::new("http.request.method", http_method(&exchange.method)),
        KeyValue::new("http.request.body.size", size),
        KeyValue::new("url.full", full(exchange)),
        KeyValue::new("url.scheme", "http"),
        KeyValue::new("url.path", truncate(exchange.path.path()).into_owned()),
        KeyValue::new("client.address", exchange.peer.ip().to_string()),
        KeyValue::new("client.port", i64::from(exchange.peer.port())),
    ];
    let optional =
        [("server.address", header::HOST.as_str()), ("user_agent.original", header::USER_AGENT.as_str())];
    attributes.extend(optional.into_iter().filter_map(|(key, name)| {
        Some(KeyValue::new(key, truncate(text(&exchange.headers, name)?).into_owned()))
    }));
    attributes
}

fn mcp_attributes(exchange: &Exchange) -> Vec<KeyValue> {
    let mut attributes = Vec::new();
    let session = text(&exchange.headers, MCP_SESSION_ID).and_then(|id| SessionId::parse(id.as_bytes()).ok());
    // The whole id would let a reader use the session.
    if let Some(beginning) = session.as_ref().map(SessionId::beginning).filter(|id| !id.is_empty()) {
        attributes.push(KeyValue::new("mcp.session.id", beginning.to_owned()));
    }
    if let Some(version) = text(&exchange.headers, MCP_PROTOCOL_VERSION) {
        attributes.push(KeyValue::new("mcp.protocol.version", truncate(version).into_owned()));
    }
    let Some(message) = exchange.message.as_ref().filter(|message| message.method.is_some()) else {
        return attributes;
    };
    attributes.push(KeyValue::new("mcp.method.name", truncate(&message.method_name).into_owned()));
    attributes.push(KeyValue::new("rpc.system.name", "jsonrpc"));
    attributes.push(KeyValue::new("jsonrpc.protocol.version", "2.0"));
    if let Some(id) = id(exchange) {
        attributes.push(KeyValue::new("jsonrpc.request.id", id));
    }
    if let Some((kind, name)) = target(message) {
        let key = match kind {
            TargetKind::Tool => "gen_ai.tool.name",
            TargetKind::Prompt => "gen_ai.prompt.name",
            TargetKind::Client => "mcp.client.name",
            _ => "mcp.resource.uri",
        };
        attributes.push(KeyValue::new(key, name));
        if kind == TargetKind::Tool {
            attributes.push(KeyValue::new("gen_ai.operation.name", "execute_tool"));
        }
    }
    attributes
}

/// The id of a request. A text is shown without its quotes.
fn id(exchange: &Exchange) -> Option<String> {
    let id = exchange.message.as_ref()?.id.as_deref()?;
    let id = std::str::from_utf8(id).ok()?;
    Some(truncate(id.trim_matches('"')).into_owned())
}

/// The address of the request, without its query.
fn full(exchange: &Exchange) -> String {
    let host = text(&exchange.headers, header::HOST.as_str()).unwrap_or_default();
    format!("http://{}{}", truncate(host), truncate(exchange.path.path()))
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok()).filter(|text| !text.is_empty())
}
