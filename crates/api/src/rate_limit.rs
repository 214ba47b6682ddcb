//! Limits on how often tools are called.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;
use skep_config::{FieldError, FieldPath};

use crate::{Duration, duration, list};

/// Limits on tool calls, counted in Redis across all replicas. A call is allowed when every bucket that applies to it
/// has a token left.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "has(self.shared) || has(self.perUser) || (has(self.tools) && size(self.tools) > 0)",
    "message": "set at least one of shared, perUser and tools, or leave rateLimiting out",
}]))]
pub struct RateLimiting {
    /// One bucket shared by all callers. It protects the server.
    pub shared: Option<RateLimitBucket>,
    /// One bucket for each authenticated caller. It keeps one caller from starving the others.
    pub per_user: Option<RateLimitBucket>,
    /// Further limits for individual tools, in addition to those above.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = list::by_name)]
    pub tools: Vec<ToolRateLimit>,
}

/// A token bucket: a call takes one token, and tokens are refilled evenly over time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RateLimitBucket {
    /// The capacity of the bucket: how many calls may be made in a burst.
    #[schemars(range(min = 1))]
    pub max_tokens: i32,
    /// How long an empty bucket takes to fill up, for example 1m. With maxTokens 60 and refillPeriod 1m, one token is
    /// refilled each second.
    #[serde(deserialize_with = "duration::flat_or_nested")]
    #[schemars(transform = duration::unchecked)]
    pub refill_period: Duration,
}

/// Limits for one tool.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "has(self.shared) || has(self.perUser)",
    "message": "set shared, perUser or both for this tool",
}]))]
pub struct ToolRateLimit {
    /// The name of the tool, as offered to clients.
    #[schemars(length(min = 1))]
    pub name: String,
    /// One bucket shared by all callers of this tool.
    pub shared: Option<RateLimitBucket>,
    /// One bucket for each authenticated caller of this tool.
    pub per_user: Option<RateLimitBucket>,
}

/// The shortest time that Redis counts by.
const SHORTEST_REFILL: std::time::Duration = std::time::Duration::from_millis(1);

impl RateLimiting {
    /// Every mistake in the limits, with fields below them.
    pub fn errors(&self) -> Vec<FieldError> {
        let tools = self.tools.iter().enumerate().flat_map(|(index, tool)| {
            let field = FieldPath::from("tools").index(index);
            errors_of(tool.shared.as_ref(), tool.per_user.as_ref())
                .map(move |error| error.within(field.clone()))
        });
        errors_of(self.shared.as_ref(), self.per_user.as_ref()).chain(tools).collect()
    }
}

fn errors_of(
    shared: Option<&RateLimitBucket>,
    per_user: Option<&RateLimitBucket>,
) -> impl Iterator<Item = FieldError> + use<> {
    let of_bucket = |(field, bucket): (&'static str, Option<&RateLimitBucket>)| {
        let errors = bucket.map(RateLimitBucket::errors).into_iter().flatten();
        errors.map(move |error| error.within(field))
    };
    [("shared", shared), ("perUser", per_user)].map(of_bucket).into_iter().flatten()
}

impl RateLimitBucket {
    fn errors(&self) -> impl Iterator<Item = FieldError> + use<> {
        // The API server rejects it; a file may have it.
        let tokens = (self.max_tokens < 1).then(|| FieldError::new("maxTokens", "must be 1 or more"));
        let period = match self.refill_period.to_std() {
            Ok(period) if period < SHORTEST_REFILL => {
                Some("must be a millisecond or more, for example 1m".into())
            }
            Ok(_) => None,
            Err(error) => Some(error.to_string()),
        };
        let period = period.map(|message: String| FieldError::new("refillPeriod", message));
        [tokens, period].into_iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn errors(limits: Value) -> Vec<String> {
        let limits: RateLimiting = serde_json::from_value(limits).unwrap();
        limits.errors().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn every_bucket_has_a_token_and_a_period_of_a_millisecond_or_more() {
        let bucket = |period: &str| json!({"maxTokens": 5, "refillPeriod": period});
        assert_eq!(errors(json!({"shared": bucket("1m30s"), "perUser": bucket("1ms")})), [] as [&str; 0]);
        let found = errors(json!({
            "shared": bucket("0s"), "perUser": bucket("soon"),
            "tools": [
                {"name": "a", "shared": bucket("1m")},
                {"name": "b", "shared": {"maxTokens": 0, "refillPeriod": "1m"}, "perUser": bucket("999us")},
            ],
        }));
        assert!(found[1].starts_with("perUser.refillPeriod: \"soon\" is not a duration"), "{found:?}");
        let short = "must be a millisecond or more, for example 1m";
        assert_eq!(
            [&found[0], &found[2], &found[3]],
            [
                &format!("shared.refillPeriod: {short}"),
                "tools[1].shared.maxTokens: must be 1 or more",
                &format!("tools[1].perUser.refillPeriod: {short}"),
            ]
        );
        assert_eq!(found.len(), 4);
    }
}
