//! Timeouts, health checks and failure handling.

use std::{collections::BTreeMap, time::Duration};

use serde::{Deserialize, Serialize};
use serde_with::apply;

use crate::{duration, zero::zero};

/// How the server handles slow and failing backends.
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Operational {
    /// The log level: `debug`, or the default.
    pub log_level: String,
    /// The timeouts of calls to backends.
    pub timeouts: Option<Timeouts>,
    /// Health checks and failure handling.
    pub failure_handling: Option<FailureHandling>,
}

/// The timeouts of calls to backends.
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Timeouts {
    /// The default timeout.
    #[serde(with = "duration::text")]
    pub default: Duration,
    /// The timeouts of single backends.
    pub per_workload: BTreeMap<String, duration::Text>,
}

/// Health checks and failure handling.
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct FailureHandling {
    /// The interval of a backend's health checks.
    #[serde(with = "duration::text")]
    pub health_check_interval: Duration,
    /// The number of failed checks in a row after which a backend is unhealthy.
    pub unhealthy_threshold: i64,
    /// The timeout of a check.
    #[serde(with = "duration::text")]
    pub health_check_timeout: Duration,
    /// The interval at which the backends' health is written to the object's status.
    #[serde(with = "duration::text")]
    pub status_reporting_interval: Duration,
    /// What happens to a request if some backends fail: `fail` or `best_effort`.
    pub partial_failure_mode: String,
    /// The circuit breaker.
    pub circuit_breaker: Option<CircuitBreaker>,
}

/// The circuit breaker for failing backends.
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct CircuitBreaker {
    /// Whether it is enabled.
    pub enabled: bool,
    /// The number of failures in a row that open it.
    pub failure_threshold: i64,
    /// How long it stays open.
    #[serde(with = "duration::text")]
    pub timeout: Duration,
}
