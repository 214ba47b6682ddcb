//! Timeouts, health checks and what happens when backends fail.

use std::{collections::BTreeMap, time::Duration};

use serde::{Deserialize, Serialize};
use serde_with::apply;

use crate::{duration, zero::zero};

/// How the server deals with slow and failing backends.
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Operational {
    /// How much is logged: `debug`, or the usual amount.
    pub log_level: String,
    /// How long calls to backends may take.
    pub timeouts: Option<Timeouts>,
    /// Health checks, and what happens when backends fail.
    pub failure_handling: Option<FailureHandling>,
}

/// How long calls to backends may take.
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Timeouts {
    /// How long a call may take.
    #[serde(with = "duration::text")]
    pub default: Duration,
    /// How long calls to single backends may take.
    pub per_workload: BTreeMap<String, duration::Text>,
}

/// Health checks, and what happens when backends fail.
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct FailureHandling {
    /// How often each backend is checked.
    #[serde(with = "duration::text")]
    pub health_check_interval: Duration,
    /// How many checks in a row must fail until a backend counts as unhealthy.
    pub unhealthy_threshold: i64,
    /// How long one check may take.
    #[serde(with = "duration::text")]
    pub health_check_timeout: Duration,
    /// How often the state of the backends is written to the object's status.
    #[serde(with = "duration::text")]
    pub status_reporting_interval: Duration,
    /// What happens to a request when some backends do not answer: `fail` or `best_effort`.
    pub partial_failure_mode: String,
    /// When a failing backend is left alone.
    pub circuit_breaker: Option<CircuitBreaker>,
}

/// When a failing backend is left alone, and for how long.
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct CircuitBreaker {
    /// Whether failing backends are left alone for a while.
    pub enabled: bool,
    /// How many checks in a row must fail until then.
    pub failure_threshold: i64,
    /// For how long.
    #[serde(with = "duration::text")]
    pub timeout: Duration,
}
