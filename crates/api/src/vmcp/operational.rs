//! Timeouts, health checks and what happens when backends fail.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::{Duration, enums::text_enum, number};

/// How the server deals with slow and failing backends.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Operational {
    /// How much is logged. Leave it out for the usual amount.
    pub log_level: Option<LogLevel>,
    /// How long calls to backends may take.
    pub timeouts: Option<Timeouts>,
    /// Health checks, and what happens when backends fail.
    pub failure_handling: Option<FailureHandling>,
}

text_enum! {
    /// How much is logged.
    pub enum LogLevel {
        /// Everything, for finding a fault.
        #[default]
        Debug = "debug",
    }
}

/// How long calls to backends may take.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Timeouts {
    /// How long a call to a backend may take.
    #[schemars(extend("default" = "30s"))]
    pub default: Option<Duration>,
    /// How long calls to single backends may take, by the backend's name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub per_workload: BTreeMap<String, Duration>,
}

text_enum! {
    /// What happens to a request when some backends do not answer.
    pub enum PartialFailureMode {
        /// The request fails.
        #[default]
        Fail = "fail",
        /// The request is answered with what the other backends have.
        BestEffort = "best_effort",
    }
}

/// Health checks, and what happens when backends fail.
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
    /// How many checks in a row must fail until a backend counts as unhealthy and its tools are no longer offered.
    #[schemars(extend("default" = 3), transform = number::plain_integer)]
    pub unhealthy_threshold: Option<i64>,
    /// How often the state of the backends is written to the object's status.
    #[schemars(extend("default" = "30s"))]
    pub status_reporting_interval: Option<Duration>,
    /// What happens to a request when some backends do not answer.
    #[schemars(extend("default" = PartialFailureMode::default()))]
    pub partial_failure_mode: Option<PartialFailureMode>,
    /// Gives a backend that keeps failing time to recover before it is checked again.
    pub circuit_breaker: Option<CircuitBreaker>,
}

/// When a failing backend is left alone, and for how long.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CircuitBreaker {
    /// Whether failing backends are left alone for a while.
    #[schemars(extend("default" = false))]
    pub enabled: Option<bool>,
    /// How many checks in a row must fail until the backend is left alone.
    #[schemars(range(min = 1), extend("default" = 5), transform = number::plain_integer)]
    pub failure_threshold: Option<i64>,
    /// How long the backend is left alone before it is tried again, 1s at least.
    #[schemars(extend("default" = "60s", "x-kubernetes-validations" = [{
        "rule": "self == '' || duration(self) >= duration('1s')",
        "message": "circuitBreaker.timeout must be 1s or longer",
    }]))]
    pub timeout: Option<Duration>,
}
