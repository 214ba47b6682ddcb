//! The traces and metrics of the process.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::number;

/// Which traces and metrics are exported, and where to.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Telemetry {
    /// The collector to send to, over OTLP on HTTP: a host and port, optionally with a path. Without it, nothing is
    /// sent.
    pub endpoint: Option<String>,
    /// Whether the collector is reached over plain HTTP.
    #[schemars(extend("default" = false))]
    pub insecure: Option<bool>,
    /// A file with the certificates of a private authority that signed the collector's certificate.
    pub ca_cert_path: Option<String>,
    /// Headers for requests to the collector.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// The service name on traces and metrics. The default is the name of the server.
    pub service_name: Option<String>,
    /// The service version on traces and metrics. The default is that of the program.
    pub service_version: Option<String>,
    /// Further attributes of the service, on all traces and metrics.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub custom_attributes: BTreeMap<String, String>,
    /// The environment variables whose values are put on traces, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub environment_variables: Vec<String>,
    /// Whether traces are sent.
    #[schemars(extend("default" = false))]
    pub tracing_enabled: Option<bool>,
    /// The share of requests to trace, from "0" for none to "1" for all. A request that already belongs to a trace
    /// keeps its sampling decision.
    #[schemars(extend("default" = "0.05"))]
    pub sampling_rate: Option<String>,
    /// Whether metrics are sent.
    #[schemars(extend("default" = false))]
    pub metrics_enabled: Option<bool>,
    /// Whether Prometheus can scrape the metrics at /metrics.
    #[schemars(extend("default" = false))]
    pub enable_prometheus_metrics_path: Option<bool>,
    /// The port that Prometheus scrapes. The default is 9464.
    #[schemars(transform = number::plain_integer)]
    pub prometheus_port: Option<i64>,
    /// Whether /metrics is also on the port that clients use. The default is true.
    pub metrics_on_transport_port: Option<bool>,
    /// Whether traces also carry the attribute names of older versions. Disable it when no dashboard needs them.
    #[schemars(extend("default" = true))]
    pub use_legacy_attributes: Option<bool>,
}
