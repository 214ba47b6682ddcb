//! What the server rejects at startup. It is validated before, so that running pods stay and no new one crashes.
//!
//! The file is read back with the server's own checks, so that what is valid here starts.

use std::time::Duration;

use skep_api::{kinds::VirtualMCPServerSpec, vmcp::Config};
use skep_config::FieldError;

/// The default interval of health checks, and the default timeout of one.
const HEALTH_CHECK_INTERVAL: Duration = Duration::from_secs(30);
const HEALTH_CHECK_TIMEOUT: Duration = Duration::from_secs(10);

/// Sections that are as the user has written them, with defaults. Others depend on objects that may be missing.
const OF_THE_SPEC: [&str; 6] =
    ["aggregation", "audit", "codeMode", "operational", "optimizer", PASSTHROUGH_HEADERS];
const PASSTHROUGH_HEADERS: &str = "passthroughHeaders";
/// Sections that come from the field of that name of the spec, and not from `config`.
const OF_OTHER_FIELDS: [&str; 3] = ["incomingAuth", "outgoingAuth", "sessionStorage"];

/// What the server would reject of this file, each by its field of the spec.
pub(super) fn errors(spec: &VirtualMCPServerSpec, file: &Config) -> Vec<FieldError> {
    rejected(file).into_iter().map(|error| in_spec(spec, error)).collect()
}

/// Those of them that are mistakes of the spec by itself, and what else is wrong with its health checks.
pub(super) fn errors_of_the_spec(spec: &VirtualMCPServerSpec, file: &Config) -> Vec<FieldError> {
    let mut errors = rejected(file);
    errors.retain(|error| OF_THE_SPEC.iter().any(|section| error.field.is_within(*section)));
    errors.extend(health_checks(file).filter(|check| !errors.iter().any(|error| error.field == check.field)));
    errors.into_iter().map(|error| in_spec(spec, error)).collect()
}

fn in_spec(spec: &VirtualMCPServerSpec, error: FieldError) -> FieldError {
    let is_of = |section: &'static str| error.field.is_within(section);
    let is_beside_config = OF_OTHER_FIELDS.into_iter().any(is_of)
        || is_of(PASSTHROUGH_HEADERS) && !spec.passthrough_headers.is_empty();
    if is_beside_config { error } else { error.within("config") }
}

fn rejected(file: &Config) -> Vec<FieldError> {
    let text = match file.render() {
        Ok(text) => text,
        Err(error) => return vec![FieldError::new("", error.to_string())],
    };
    Config::parse_checked(&text, skep_workflow::check_tools).err().unwrap_or_default()
}

/// ToolHive's program compares defaults, too.
fn health_checks(file: &Config) -> Option<FieldError> {
    let handling = file.operational.as_ref()?.failure_handling.as_ref()?;
    // A value that is not a duration is reported by its own check.
    let time = |value: &Option<skep_api::Duration>, default| {
        let value = value.as_ref().and_then(|value| value.to_std().ok());
        value.filter(|time| !time.is_zero()).unwrap_or(default)
    };
    let timeout = time(&handling.health_check_timeout, HEALTH_CHECK_TIMEOUT);
    let interval = time(&handling.health_check_interval, HEALTH_CHECK_INTERVAL);
    let message = format!("{timeout:?} must be shorter than healthCheckInterval, which is {interval:?}");
    (timeout >= interval).then(|| FieldError::new("operational.failureHandling.healthCheckTimeout", message))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn rejected_field(mut config: Value) -> Option<String> {
        let prefix =
            json!({"conflictResolution": "prefix", "conflictResolutionConfig": {"prefixFormat": "_"}});
        config.as_object_mut().unwrap().entry("aggregation").or_insert(prefix);
        let spec = VirtualMCPServerSpec::default();
        let errors = errors_of_the_spec(&spec, &serde_json::from_value(config).unwrap());
        errors.first().map(|error| error.field.to_string())
    }

    #[test]
    fn what_the_server_would_reject_is_reported_by_its_field() {
        let handling = |handling: Value| json!({"operational": {"failureHandling": handling}});
        let timeout = "config.operational.failureHandling.healthCheckTimeout";
        for (config, field) in [
            (handling(json!({"healthCheckInterval": "10s"})), timeout),
            (handling(json!({"healthCheckTimeout": "30s"})), timeout),
            (
                handling(json!({"circuitBreaker": {"enabled": true, "timeout": "500ms"}})),
                "config.operational.failureHandling.circuitBreaker.timeout",
            ),
            (
                json!({"operational": {"timeouts": {"perWorkload": {"a": "soon"}}}}),
                "config.operational.timeouts.perWorkload[a]",
            ),
            (json!({"codeMode": {"toolCallTimeout": "1"}}), "config.codeMode.toolCallTimeout"),
            (json!({"codeMode": {"stepLimit": -1}}), "config.codeMode.stepLimit"),
            (json!({"passthroughHeaders": ["X-A", "TE"]}), "config.passthroughHeaders[1]"),
            (json!({"audit": {"maxDataSize": -1}}), "config.audit.maxDataSize"),
            (
                json!({"optimizer": {"hybridSearchSemanticRatio": "1.1"}}),
                "config.optimizer.hybridSearchSemanticRatio",
            ),
            (json!({"optimizer": {"embeddingProvider": "openai"}}), "config.optimizer.embeddingModel"),
            (
                json!({"aggregation": {"conflictResolution": "prefix"}}),
                "config.aggregation.conflictResolutionConfig",
            ),
        ] {
            assert_eq!(rejected_field(config), Some(field.to_owned()));
        }
        for config in [
            json!({}),
            json!({"optimizer": {}}),
            handling(json!({})),
            // The file does not have it: a zero is none.
            handling(json!({"healthCheckInterval": "0s"})),
            handling(json!({"healthCheckInterval": "5s", "healthCheckTimeout": "4999ms"})),
            json!({"optimizer": {"hybridSearchSemanticRatio": "1", "semanticDistanceThreshold": ".5"}}),
        ] {
            assert_eq!(rejected_field(config), None);
        }
    }
}
