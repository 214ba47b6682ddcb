//! Rate limits, which MCPServers and VirtualMCPServers share.

use skep_api::rate_limit::{RateLimitBucket, RateLimiting};
use skep_config::run_config::{self, RateLimits};

/// The limits for a RunConfig. They have passed [`RateLimiting::errors`].
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
    use crate::config_refs::samples::sample;

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
