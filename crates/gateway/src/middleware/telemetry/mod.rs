//! Traces and metrics: what was requested, how it ended, and how long it took.
//!
//! They go to a collector by OTLP over HTTP, and metrics can be scraped by Prometheus. Without either there is no such
//! middleware. A request is measured from its arrival until its response has ended or the client has disconnected. What
//! is to be sent waits in bounded queues, for separate threads.

mod backends;
mod collector;
mod durations;
mod labels;
mod metrics;
mod names;
mod outcome;
mod page;
mod prometheus;
mod rate_limits;
mod searches;
mod settings;
mod spans;
mod workflows;

use std::{
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::{Duration, Instant},
};

use http::{Method, StatusCode, header};
use opentelemetry_sdk::trace::Span;
use skep_config::run_config::TelemetryParameters;
use tracing::warn;

use crate::{
    ConfigError,
    http::{Ended, Observer},
    limits,
    message::{Checked, Exchange, RateLimited, RequestMetrics},
    middleware::ChainContext,
};
pub use backends::{BackendRequest, BackendState};
use collector::Collector;
use labels::{ABANDONED, Known, Measured, Server, Subject};
use metrics::Metrics;
use outcome::failed;
pub(super) use outcome::{Failure, RpcError, failure, rpc_error};
pub use page::{METRICS, Page, not_served};
use prometheus::Prometheus;
pub use searches::SearchEvent;
use settings::wrong;
use spans::Spans;
pub use workflows::WorkflowRun;

/// The instrumentation scope.
const SCOPE: &str = "skep";

/// Traces and measures requests.
#[derive(Clone)]
pub struct Telemetry(Arc<Shared>);

struct Shared {
    spans: Option<Spans>,
    metrics: Option<Metrics>,
    prometheus: Option<Arc<Prometheus>>,
    known: Known,
    page: Option<Page>,
}

impl Telemetry {
    /// The middleware, unless neither a collector nor Prometheus is configured.
    pub(super) fn new(
        parameters: &TelemetryParameters,
        context: &ChainContext<'_>,
    ) -> Result<Option<Self>, ConfigError> {
        let config = &parameters.config;
        if config.service_name.is_empty() {
            return Err(wrong(&"serviceName is missing"));
        }
        let (traces, metrics) = (config.tracing_enabled, config.metrics_enabled);
        if !config.endpoint.is_empty() && !traces && !metrics {
            return Err(wrong(&"endpoint: nothing is sent there: enable tracing, metrics, or both"));
        }
        let server = Server::new(&parameters.server_name, parameters.transport);
        let resource = settings::resource(config);
        let sent = !config.endpoint.is_empty();
        if !sent && !config.enable_prometheus_metrics_path {
            return Ok(None);
        }
        let mut shared =
            Shared { spans: None, metrics: None, prometheus: None, known: Known::default(), page: None };
        if sent {
            let headers = settings::headers(config, settings::variables().into_iter())?;
            let collector = Collector::new(&config.ca_cert_path, headers)?;
            if traces {
                shared.spans = Some(Spans::new(config, &collector, resource.clone(), server.clone())?);
            }
            if metrics {
                shared.metrics = Some(Metrics::new(
                    config,
                    &collector,
                    resource.clone(),
                    server.clone(),
                    context.is_virtual,
                )?);
            }
        }
        if config.enable_prometheus_metrics_path {
            let prometheus = Arc::new(Prometheus::new(&resource, server, context.is_virtual));
            shared.page = Some(Page::new(prometheus.clone(), config, context.host));
            shared.prometheus = Some(prometheus);
        }
        Ok(Some(Self(Arc::new(shared))))
    }

    /// Starts to measure a request.
    pub(super) fn request(&self, exchange: &mut Exchange) {
        exchange.metrics = Some(Arc::new(Measurement::new(&self.0, exchange)));
    }

    /// Measures the end of the response, also of a request that an outer middleware rejected.
    pub(super) fn observer(&self, exchange: &Exchange, status: StatusCode) -> Option<Box<dyn Observer>> {
        let new = || -> Arc<dyn RequestMetrics> { Arc::new(Measurement::new(&self.0, exchange)) };
        let metrics = exchange.metrics.clone().unwrap_or_else(new);
        metrics.responded(status);
        Some(Box::new(Watch(metrics)))
    }

    /// Measures a request whose client disconnected, unless it is measured already: then its end is recorded with it.
    pub(super) fn abandoned(&self, exchange: &Exchange) {
        if exchange.metrics.is_none() {
            drop(Measurement::new(&self.0, exchange));
        }
    }

    /// Sets which backends a virtual server has, and their state.
    pub fn set_backends(&self, states: &[BackendState<'_>]) {
        if let Some(backends) = self.0.metrics.as_ref().and_then(|metrics| metrics.backends.as_ref()) {
            backends.states(states);
        }
        if let Some(backends) = self.0.prometheus.as_ref().and_then(|page| page.backends.as_ref()) {
            backends.states(states);
        }
    }

    /// Records a request to a backend that has ended.
    pub fn record_backend(&self, request: &BackendRequest<'_>) {
        if let Some(backends) = self.0.metrics.as_ref().and_then(|metrics| metrics.backends.as_ref()) {
            backends.ended(request);
        }
        if let Some(backends) = self.0.prometheus.as_ref().and_then(|page| page.backends.as_ref()) {
            backends.ended(request);
        }
    }

    /// Records a run of a workflow that has ended.
    pub fn record_workflow(&self, run: &WorkflowRun<'_>) {
        if let Some(workflows) = self.0.metrics.as_ref().and_then(|metrics| metrics.workflows.as_ref()) {
            workflows.ended(run);
        }
        if let Some(workflows) = self.0.prometheus.as_ref().and_then(|page| page.workflows.as_ref()) {
            workflows.ended(run);
        }
    }

    /// Records an event of the tool search.
    pub fn record_search(&self, event: SearchEvent) {
        self.0.record_search(event);
    }

    /// What Prometheus can scrape.
    pub fn page(&self) -> Option<&Page> {
        self.0.page.as_ref()
    }

    /// Sends what is queued, within a timeout.
    pub async fn flush(&self) {
        let shared = self.0.clone();
        let (done, flushed) = tokio::sync::oneshot::channel();
        // Not one of the runtime's threads: the end of the runtime would wait for it.
        let thread = std::thread::Builder::new().name("flush".into());
        let started = thread.spawn(move || {
            if let Some(spans) = &shared.spans {
                spans.shut_down(limits::FLUSH_TIME);
            }
            if let Some(metrics) = &shared.metrics {
                metrics.shut_down();
            }
            done.send(()).ok();
        });
        if started.is_err() || tokio::time::timeout(limits::FLUSH_TIME, flushed).await.is_err() {
            warn!("timeout sending the last traces and metrics");
        }
    }
}

impl Shared {
    fn active(&self, change: i64, stream: bool) {
        if let Some(metrics) = &self.metrics {
            metrics.active(change, stream);
        }
        if let Some(prometheus) = &self.prometheus {
            prometheus.active(change, stream);
        }
    }

    fn record_search(&self, event: SearchEvent) {
        if let Some(searches) = self.metrics.as_ref().and_then(|metrics| metrics.searches.as_ref()) {
            searches.record(event);
        }
        if let Some(searches) = self.prometheus.as_ref().and_then(|page| page.searches.as_ref()) {
            searches.record(event);
        }
    }

    fn record(&self, measured: &Measured<'_>) {
        if let Some(metrics) = &self.metrics {
            metrics.ended(measured);
        }
        if let Some(prometheus) = &self.prometheus {
            prometheus.ended(measured);
        }
    }
}

/// A request in flight. Its measurements are recorded when it is dropped.
struct Measurement {
    shared: Arc<Shared>,
    started: Instant,
    subject: Subject,
    span: Mutex<Option<Span>>,
    /// Whether it opens a stream for messages of the server.
    listens: bool,
    /// Whether it calls a tool that the client found by a search.
    is_searched: bool,
    end: OnceLock<Ended>,
}

impl Measurement {
    fn new(shared: &Arc<Shared>, exchange: &Exchange) -> Self {
        let accept = exchange.headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
        let listens = exchange.method == Method::GET
            && accept.is_some_and(|accept| accept.contains("text/event-stream"));
        shared.active(1, listens);
        Self {
            started: exchange.started,
            subject: Subject::of(exchange),
            span: Mutex::new(shared.spans.as_ref().and_then(|spans| spans.start(exchange))),
            listens,
            is_searched: exchange.origin.is_unwrapped(),
            end: OnceLock::new(),
            shared: shared.clone(),
        }
    }
}

impl RequestMetrics for Measurement {
    fn rate_limited(&self, limits: &RateLimited, checked: &Checked<'_>, took: Duration) {
        if let Some(metrics) = &self.shared.metrics {
            metrics.rate_limits.checked(limits, checked, took);
        }
        if let Some(prometheus) = &self.shared.prometheus {
            prometheus.rate_limits.checked(limits, checked, took);
        }
    }

    /// The span of a stream ends when the stream starts.
    fn responded(&self, status: StatusCode) {
        if !self.listens || !status.is_success() {
            return;
        }
        let span = self.span.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let (Some(spans), Some(span)) = (&self.shared.spans, span) {
            spans.end_of_stream(span);
        }
    }

    fn ended(&self, end: Ended) {
        self.end.set(end).ok();
    }
}

impl Drop for Measurement {
    fn drop(&mut self) {
        let shared = &self.shared;
        shared.active(-1, self.listens);
        let end = self.end.get();
        let failure = match end {
            None => Some(Failure::Abandoned),
            // What is sent on the stream is not the response to this request.
            Some(end) if self.listens => failed(end.status),
            Some(end) => failure(end),
        };
        let status = end.map(|end| end.status.as_u16());
        let labels = shared.known.labels(&self.subject, status.unwrap_or(ABANDONED), failure);
        let streamed = self.listens && failure.is_none();
        let took = (!streamed).then(|| self.started.elapsed());
        if self.is_searched {
            let has_failed = failure.is_some();
            shared.record_search(SearchEvent::Called { has_failed, took: self.started.elapsed() });
        }
        shared.record(&Measured { labels: &labels, took });
        let span = self.span.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let (Some(spans), Some(span)) = (&shared.spans, span) {
            spans.end(span, status, end.map_or(0, |end| end.bytes), failure);
        }
    }
}

/// Observes the end of a response.
struct Watch(Arc<dyn RequestMetrics>);

impl Observer for Watch {
    fn prefix(&self) -> usize {
        limits::PARSED_PREFIX
    }

    fn ended(self: Box<Self>, end: Ended) {
        self.0.ended(end);
    }
}
