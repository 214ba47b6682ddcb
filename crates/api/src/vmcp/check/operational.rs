//! Timeouts, health checks and the circuit breaker.

use std::time::Duration;

use skep_config::{FieldError, FieldPath};

use crate::{
    Duration as GoDuration,
    vmcp::{FailureHandling, Operational, Timeouts},
};

/// The default interval of health checks, and the default timeout of one.
const HEALTH_CHECK_INTERVAL: Duration = Duration::from_secs(30);
const HEALTH_CHECK_TIMEOUT: Duration = Duration::from_secs(10);
/// The shortest time for which a circuit is open.
const CIRCUIT_TIME: Duration = Duration::from_secs(1);

pub(super) fn errors(operational: &Operational) -> Vec<FieldError> {
    let timeouts = operational.timeouts.iter().flat_map(timeouts).map(|error| error.within("timeouts"));
    let handling = operational.failure_handling.iter().flat_map(handling);
    timeouts.chain(handling.map(|error| error.within("failureHandling"))).collect()
}

fn timeouts(timeouts: &Timeouts) -> Vec<FieldError> {
    let default = timeouts.default.iter().map(|duration| (FieldPath::from("default"), duration));
    let each = timeouts
        .per_workload
        .iter()
        .map(|(name, duration)| (FieldPath::from("perWorkload").key(name), duration));
    default.chain(each).filter_map(|(field, duration)| positive(field, duration)).collect()
}

fn handling(handling: &FailureHandling) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (field, duration) in [
        ("healthCheckInterval", &handling.health_check_interval),
        ("healthCheckTimeout", &handling.health_check_timeout),
        ("statusReportingInterval", &handling.status_reporting_interval),
    ] {
        errors.extend(duration.as_ref().and_then(|duration| positive(field.into(), duration)));
    }
    if handling.unhealthy_threshold.is_some_and(|threshold| threshold < 1) {
        errors.push(FieldError::new("unhealthyThreshold", "must be 1 or more"));
    }
    // A value that is not a duration is reported by its own check.
    let time = |value: &Option<GoDuration>, default| {
        let value = value.as_ref().and_then(|value| value.to_std().ok());
        value.filter(|time| !time.is_zero()).unwrap_or(default)
    };
    let timeout = time(&handling.health_check_timeout, HEALTH_CHECK_TIMEOUT);
    let interval = time(&handling.health_check_interval, HEALTH_CHECK_INTERVAL);
    // Where only the interval is set, checks end with it.
    if handling.health_check_timeout.is_some() && timeout >= interval {
        let message = format!("{timeout:?} must be shorter than healthCheckInterval, which is {interval:?}");
        errors.push(FieldError::new("healthCheckTimeout", message));
    }
    let breaker = handling.circuit_breaker.as_ref().filter(|breaker| breaker.enabled == Some(true));
    if let Some(breaker) = breaker {
        if breaker.failure_threshold.is_some_and(|threshold| threshold < 1) {
            errors.push(FieldError::new("circuitBreaker.failureThreshold", "must be 1 or more"));
        }
        let is_long = |timeout: &GoDuration| timeout.to_std().is_ok_and(|timeout| timeout >= CIRCUIT_TIME);
        if !breaker.timeout.as_ref().is_none_or(is_long) {
            errors.push(FieldError::new("circuitBreaker.timeout", "must be a duration of 1s or more"));
        }
    }
    errors
}

fn positive(field: FieldPath, duration: &GoDuration) -> Option<FieldError> {
    match duration.to_std() {
        Ok(duration) if duration.is_zero() => Some(FieldError::new(field, "must be more than 0s")),
        Ok(_) => None,
        Err(error) => Some(FieldError::new(field, error.to_string())),
    }
}
