//! Traces and metrics.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_with::apply;

use crate::{ports, zero::zero};

/// The traces and metrics, and their collector.
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Telemetry {
    /// The collector, as host and port without a scheme, and optionally a path.
    pub endpoint: String,
    /// The service name on traces and metrics.
    pub service_name: String,
    /// The service version on traces and metrics.
    pub service_version: String,
    /// Whether traces are sent.
    #[serde_with(skip_apply)]
    pub tracing_enabled: bool,
    /// Whether metrics are sent.
    #[serde_with(skip_apply)]
    pub metrics_enabled: bool,
    /// The fraction of requests that is traced, from `0` to `1`.
    pub sampling_rate: String,
    /// Headers for requests to the collector.
    pub headers: BTreeMap<String, String>,
    /// Whether the connection to the collector is plain HTTP.
    pub insecure: bool,
    /// Whether Prometheus can scrape the metrics at `/metrics`.
    pub enable_prometheus_metrics_path: bool,
    /// The port that Prometheus scrapes: see [`Telemetry::prometheus_port`].
    pub prometheus_port: u16,
    /// Whether `/metrics` is also on the port that clients use: see [`Telemetry::metrics_on_transport_port`].
    pub metrics_on_transport_port: Option<bool>,
    /// The environment variables whose values are attributes of traces.
    pub environment_variables: Vec<String>,
    /// Further attributes of the service, on all traces and metrics.
    pub custom_attributes: BTreeMap<String, String>,
    /// Whether traces also have the attribute names of older versions.
    #[serde_with(skip_apply)]
    pub use_legacy_attributes: bool,
    /// A file with the certificate authority of the collector.
    pub ca_cert_path: String,
}

impl Telemetry {
    /// The port that Prometheus scrapes. The default is [`ports::PROMETHEUS`].
    pub fn prometheus_port(&self) -> u16 {
        if self.prometheus_port == 0 { ports::PROMETHEUS } else { self.prometheus_port }
    }

    /// Whether `/metrics` is also on the port that clients use. The default is true.
    pub fn metrics_on_transport_port(&self) -> bool {
        self.metrics_on_transport_port.unwrap_or(true)
    }
}
