//! Limits on how often tools are called.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

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
