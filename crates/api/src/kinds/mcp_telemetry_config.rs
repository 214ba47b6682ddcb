//! MCPTelemetryConfig: the configuration of traces and metrics.

use std::collections::BTreeMap;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::{
    config_status::ConfigStatus,
    list,
    refs::{CaBundleRef, SecretKeyRef},
};

/// An MCPTelemetryConfig configures the export of traces and metrics of MCP requests. Servers share it by
/// telemetryConfigRef, where each can set its own service name.
#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "toolhive.stacklok.dev",
    version = "v1beta1",
    kind = "MCPTelemetryConfig",
    plural = "mcptelemetryconfigs",
    shortname = "mcpotel",
    category = "toolhive",
    namespaced,
    schema = "disabled",
    status = "ConfigStatus",
    derive = "Default",
    derive = "PartialEq",
    printcolumn(name = "Endpoint", type_ = "string", json_path = ".spec.openTelemetry.endpoint"),
    printcolumn(
        name = "Valid",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Valid')].status"
    ),
    printcolumn(name = "Tracing", type_ = "boolean", json_path = ".spec.openTelemetry.tracing.enabled"),
    printcolumn(name = "Metrics", type_ = "boolean", json_path = ".spec.openTelemetry.metrics.enabled"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct MCPTelemetryConfigSpec {
    /// Traces and metrics that are sent to an OpenTelemetry collector.
    pub open_telemetry: Option<OpenTelemetry>,
    /// Metrics that Prometheus scrapes.
    pub prometheus: Option<Prometheus>,
}

/// Metrics for Prometheus.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Prometheus {
    /// Whether the proxy serves /metrics on its port.
    #[schemars(extend("default" = false))]
    pub enabled: Option<bool>,
}

/// Where and how to send to an OpenTelemetry collector.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "!has(self.headers) || !has(self.sensitiveHeaders) || self.sensitiveHeaders.all(sh, !(sh.name in self.headers))",
    "message": "a header cannot be in both headers and sensitiveHeaders: keep it in one of them",
}]))]
pub struct OpenTelemetry {
    /// Whether anything is sent. The other fields have no effect while it is false.
    #[schemars(extend("default" = false))]
    pub enabled: Option<bool>,
    /// The address of the collector, as host:port or URL. Data is exported by OTLP over HTTP.
    pub endpoint: Option<String>,
    /// Whether the collector is reached without TLS.
    #[schemars(extend("default" = false))]
    pub insecure: Option<bool>,
    /// Headers to send with every export. They are stored in plain text: put secrets into sensitiveHeaders.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Headers whose values are taken from Secrets, for example an API key.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = list::by_name)]
    pub sensitive_headers: Vec<SensitiveHeader>,
    /// Attributes to put on everything that is sent, for example deployment.environment.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub resource_attributes: BTreeMap<String, String>,
    /// Traces: one span for each MCP request.
    pub tracing: Option<Tracing>,
    /// Metrics: counts and durations of MCP requests.
    pub metrics: Option<Metrics>,
    /// Whether spans carry the older attribute names as well as those of the OpenTelemetry conventions for MCP.
    /// Disable it when no dashboard needs them.
    #[schemars(extend("default" = true))]
    pub use_legacy_attributes: Option<bool>,
    /// The CA certificates for a collector whose certificate is signed by a private authority.
    pub ca_bundle_ref: Option<CaBundleRef>,
}

/// A header whose value is taken from a Secret.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SensitiveHeader {
    /// The name of the header.
    #[schemars(length(min = 1))]
    pub name: String,
    /// The Secret key that holds the value.
    pub secret_key_ref: SecretKeyRef,
}

/// Whether and how much to trace.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Tracing {
    /// Whether spans are sent.
    #[schemars(extend("default" = false))]
    pub enabled: Option<bool>,
    /// The share of requests to trace, from 0 to 1. It is a string, so that 0.05 is stored exactly.
    #[schemars(regex(pattern = "^(0(\\.\\d+)?|1(\\.0+)?)$"), extend("default" = "0.05"))]
    pub sampling_rate: Option<String>,
}

/// Whether to send metrics.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Metrics {
    /// Whether metrics are sent.
    #[schemars(extend("default" = false))]
    pub enabled: Option<bool>,
}
