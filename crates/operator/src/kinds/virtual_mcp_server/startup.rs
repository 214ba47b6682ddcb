//! What the server rejects at startup. It is validated before, so that running pods stay and no new one crashes.

use std::time::Duration;

use skep_api::vmcp::{Config, check};
use skep_config::{FieldError, FieldPath};

/// The default interval of health checks, and the default timeout of one.
const HEALTH_CHECK_INTERVAL: Duration = Duration::from_secs(30);
const HEALTH_CHECK_TIMEOUT: Duration = Duration::from_secs(10);

/// Everything that the server would reject.
pub(super) fn errors(config: &Config) -> Vec<FieldError> {
    let mut errors = check_durations(config);
    errors.extend(check_health_checks(config));
    let order = config.aggregation.as_ref().and_then(check::priority_order);
    errors.extend(order.map(|error| error.within("config.aggregation")));
    let search = config.optimizer.iter().flat_map(check::search);
    errors.extend(search.map(|error| error.within("config.optimizer")));
    errors
}

/// Durations outside of composite tools, rate limits and the search, which have checks of their own.
fn check_durations(config: &Config) -> Vec<FieldError> {
    let operational = config.operational.as_ref();
    let timeouts = operational.and_then(|operational| operational.timeouts.as_ref());
    let handling = operational.and_then(|operational| operational.failure_handling.as_ref());
    let breaker = handling.and_then(|handling| handling.circuit_breaker.as_ref());
    let fields = [
        ("operational.timeouts.default", timeouts.and_then(|timeouts| timeouts.default.as_ref())),
        (
            "operational.failureHandling.healthCheckInterval",
            handling.and_then(|handling| handling.health_check_interval.as_ref()),
        ),
        (
            "operational.failureHandling.healthCheckTimeout",
            handling.and_then(|handling| handling.health_check_timeout.as_ref()),
        ),
        (
            "operational.failureHandling.statusReportingInterval",
            handling.and_then(|handling| handling.status_reporting_interval.as_ref()),
        ),
        (
            "operational.failureHandling.circuitBreaker.timeout",
            breaker.and_then(|breaker| breaker.timeout.as_ref()),
        ),
        (
            "codeMode.toolCallTimeout",
            config.code_mode.as_ref().and_then(|mode| mode.tool_call_timeout.as_ref()),
        ),
    ];
    let fields = fields.into_iter().filter_map(|(field, duration)| Some((FieldPath::from(field), duration?)));
    let workloads = timeouts.iter().flat_map(|timeouts| &timeouts.per_workload);
    let workloads = workloads
        .map(|(name, duration)| (FieldPath::from("operational.timeouts.perWorkload").key(name), duration));
    let errors = fields.chain(workloads).filter_map(|(field, duration)| {
        Some(FieldError::new(field, duration.to_std().err()?.to_string()).within("config"))
    });
    errors.collect()
}

fn check_health_checks(config: &Config) -> Option<FieldError> {
    let handling = config.operational.as_ref()?.failure_handling.as_ref()?;
    // A value that is not a duration is reported by its own check.
    let time = |value: &Option<skep_api::Duration>, default| {
        let value = value.as_ref().and_then(|value| value.to_std().ok());
        value.filter(|time| !time.is_zero()).unwrap_or(default)
    };
    let timeout = time(&handling.health_check_timeout, HEALTH_CHECK_TIMEOUT);
    let interval = time(&handling.health_check_interval, HEALTH_CHECK_INTERVAL);
    let message = format!("{timeout:?} must be shorter than healthCheckInterval, which is {interval:?}");
    (timeout >= interval)
        .then(|| FieldError::new("config.operational.failureHandling.healthCheckTimeout", message))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn rejected_field(config: Value) -> Option<String> {
        let errors = errors(&serde_json::from_value(config).unwrap());
        errors.first().map(|error| error.field.to_string())
    }

    #[test]
    fn what_the_server_would_reject_is_reported_by_its_field() {
        let handling = |handling: Value| json!({"operational": {"failureHandling": handling}});
        let timeout = "config.operational.failureHandling.healthCheckTimeout";
        for (config, field) in [
            (handling(json!({"healthCheckInterval": "10s"})), timeout),
            (handling(json!({"healthCheckTimeout": "30s", "healthCheckInterval": "0s"})), timeout),
            (
                json!({"operational": {"timeouts": {"perWorkload": {"a": "soon"}}}}),
                "config.operational.timeouts.perWorkload[a]",
            ),
            (json!({"codeMode": {"toolCallTimeout": "1"}}), "config.codeMode.toolCallTimeout"),
            (
                json!({"optimizer": {"hybridSearchSemanticRatio": "1.1"}}),
                "config.optimizer.hybridSearchSemanticRatio",
            ),
            (json!({"optimizer": {"embeddingProvider": "openai"}}), "config.optimizer.embeddingModel"),
        ] {
            assert_eq!(rejected_field(config), Some(field.to_owned()));
        }
        for config in [
            json!({}),
            json!({"optimizer": {}}),
            handling(json!({})),
            handling(json!({"healthCheckInterval": "5s", "healthCheckTimeout": "4999ms"})),
            json!({"optimizer": {"hybridSearchSemanticRatio": "1", "semanticDistanceThreshold": ".5"}}),
        ] {
            assert_eq!(rejected_field(config), None);
        }
    }
}
