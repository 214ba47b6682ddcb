//! Timeouts, health checks and what happens when backends fail.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::{apply, skip_serializing_none};

use crate::{Duration, enums::text_enum, number, unset};

/// How the server handles slow and failing backends.
#[apply(Option<LogLevel> => #[serde(default, deserialize_with = "unset::non_zero")])]
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Operational {
    /// The log level. Leave it out for the default.
    pub log_level: Option<LogLevel>,
    /// The timeouts for calls to backends.
    pub timeouts: Option<Timeouts>,
    /// Health checks, and what happens when backends fail.
    pub failure_handling: Option<FailureHandling>,
}

text_enum! {
    /// The log level.
    pub enum LogLevel {
        /// Everything, for debugging.
        #[default]
        Debug = "debug",
    }
}

/// The timeouts for calls to backends.
#[apply(Option<Duration> => #[serde(default, deserialize_with = "unset::non_zero_duration")])]
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Timeouts {
    /// The timeout for a call to a backend.
    #[schemars(extend("default" = "30s"))]
    pub default: Option<Duration>,
    /// The timeouts for individual backends, by the backend's name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub per_workload: BTreeMap<String, Duration>,
}

text_enum! {
    /// What a list is while no backend at all can be listed. Backends that fail never affect others.
    pub enum PartialFailureMode {
        /// An error that names the backends.
        #[default]
        Fail = "fail",
        /// An empty list.
        BestEffort = "best_effort",
    }
}

/// Health checks, and what happens when backends fail.
#[apply(
    Option<Duration> => #[serde(default, deserialize_with = "unset::non_zero_duration")],
    Option<i64> => #[serde(default, deserialize_with = "unset::non_zero")],
    Option<PartialFailureMode> => #[serde(default, deserialize_with = "unset::non_zero")],
)]
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FailureHandling {
    /// How often each backend is checked.
    #[schemars(extend("default" = "30s"))]
    pub health_check_interval: Option<Duration>,
    /// How long one check may take. It must be shorter than healthCheckInterval.
    #[schemars(extend("default" = "10s"))]
    pub health_check_timeout: Option<Duration>,
    /// How many consecutive checks must fail until a backend counts as unhealthy and its tools are no longer offered.
    #[schemars(extend("default" = 3), transform = number::plain_integer)]
    pub unhealthy_threshold: Option<i64>,
    /// How often the state of the backends is written to the object's status.
    #[schemars(extend("default" = "30s"))]
    pub status_reporting_interval: Option<Duration>,
    /// What a list is while no backend at all can be listed. Backends that fail never affect others.
    #[schemars(extend("default" = PartialFailureMode::default()))]
    pub partial_failure_mode: Option<PartialFailureMode>,
    /// A circuit breaker: it gives a failing backend time to recover before it is tried again.
    pub circuit_breaker: Option<CircuitBreaker>,
}

/// When the circuit breaker opens for a failing backend, and for how long.
#[apply(
    Option<bool> => #[serde(default, deserialize_with = "unset::non_zero")],
    Option<i64> => #[serde(default, deserialize_with = "unset::non_zero")],
    Option<Duration> => #[serde(default, deserialize_with = "unset::non_zero_duration")],
)]
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CircuitBreaker {
    /// Whether the circuit breaker is enabled.
    #[schemars(extend("default" = false))]
    pub enabled: Option<bool>,
    /// How many consecutive checks must fail until the circuit breaker opens.
    #[schemars(range(min = 1), extend("default" = 5), transform = number::plain_integer)]
    pub failure_threshold: Option<i64>,
    /// How long the circuit breaker stays open before the backend is tried again, at least 1s.
    #[schemars(extend("default" = "60s", "x-kubernetes-validations" = [{
        "rule": "self == '' || duration(self) >= duration('1s')",
        "message": "circuitBreaker.timeout must be 1s or longer",
    }]))]
    pub timeout: Option<Duration>,
}
