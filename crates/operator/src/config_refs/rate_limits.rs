//! Rate limits, which MCPServers and VirtualMCPServers share.

use skep_api::rate_limit::{RateLimitBucket, RateLimiting};
use skep_config::{
    FieldError, FieldPath,
    run_config::{self, RateLimits},
};

/// Every mistake in the limits, with fields below them.
pub(crate) fn check(limits: &RateLimiting) -> Vec<FieldError> {
    let tools = limits.tools.iter().enumerate().flat_map(|(index, tool)| {
        let field = FieldPath::from("tools").index(index);
        check_buckets(tool.shared.as_ref(), tool.per_user.as_ref())
            .map(move |error| error.within(field.clone()))
    });
    check_buckets(limits.shared.as_ref(), limits.per_user.as_ref()).chain(tools).collect()
}

fn check_buckets(
    shared: Option<&RateLimitBucket>,
    per_user: Option<&RateLimitBucket>,
) -> impl Iterator<Item = FieldError> + use<> {
    let buckets = [("shared", shared), ("perUser", per_user)];
    let errors = buckets.map(|(field, bucket)| Some(check_bucket(bucket?).err()?.within(field)));
    errors.into_iter().flatten()
}

fn check_bucket(bucket: &RateLimitBucket) -> Result<(), FieldError> {
    let message = match bucket.refill_period.to_std() {
        Ok(period) if period.is_zero() => "must be more than zero, for example 1m".into(),
        Ok(_) => return Ok(()),
        Err(error) => error.to_string(),
    };
    Err(FieldError::new("refillPeriod", message))
}

/// The limits for a RunConfig. They have passed [`check`].
pub(crate) fn rate_limits(limits: &RateLimiting) -> RateLimits {
    let tools = limits.tools.iter().map(|tool| run_config::ToolRateLimit {
        name: tool.name.clone(),
        shared: tool.shared.as_ref().map(bucket),
        per_user: tool.per_user.as_ref().map(bucket),
    });
    RateLimits {
        shared: limits.shared.as_ref().map(bucket),
        per_user: limits.per_user.as_ref().map(bucket),
        tools: tools.collect(),
    }
}

fn bucket(bucket: &RateLimitBucket) -> run_config::RateLimitBucket {
    run_config::RateLimitBucket {
        max_tokens: bucket.max_tokens.try_into().unwrap_or_default(),
        refill_period: bucket.refill_period.to_std().unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;
    use crate::config_refs::samples::{fields, sample};

    #[test]
    fn every_refill_period_is_a_duration_above_zero() {
        let valid = sample(json!({"shared": {"maxTokens": 5, "refillPeriod": "1m30s"}}));
        assert_eq!(check(&valid), []);
        let bucket = |period: &str| json!({"maxTokens": 5, "refillPeriod": period});
        let invalid = sample(json!({
            "shared": bucket("0s"), "perUser": bucket("soon"),
            "tools": [{"name": "a", "shared": bucket("1m")}, {"name": "b", "perUser": bucket("")}],
        }));
        let errors = check(&invalid);
        let expected = ["shared.refillPeriod", "perUser.refillPeriod", "tools[1].perUser.refillPeriod"];
        assert_eq!(fields(&errors), expected);
        assert_eq!(errors[0].message, "must be more than zero, for example 1m");
        assert!(errors[1].message.starts_with("\"soon\" is not a duration"), "{errors:?}");
    }

    #[test]
    fn the_limits_of_a_run_config_are_those_of_the_spec() {
        let limits = rate_limits(&sample(json!({
            "perUser": {"maxTokens": 60, "refillPeriod": "1m"},
            "tools": [{"name": "find", "shared": {"maxTokens": 2, "refillPeriod": "1s"}}],
        })));
        let bucket = |max_tokens, seconds| {
            Some(run_config::RateLimitBucket { max_tokens, refill_period: Duration::from_secs(seconds) })
        };
        let tool = run_config::ToolRateLimit { name: "find".into(), shared: bucket(2, 1), per_user: None };
        assert_eq!(limits, RateLimits { shared: None, per_user: bucket(60, 60), tools: vec![tool] });
    }
}
