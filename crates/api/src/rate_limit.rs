//! Limits on how often tools are called.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::{Duration, duration, list};

/// Limits on tool calls, counted in Redis across all replicas. A call passes when every bucket that applies to it
/// has a token left.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "has(self.shared) || has(self.perUser) || (has(self.tools) && size(self.tools) > 0)",
    "message": "set at least one of shared, perUser and tools, or leave rateLimiting out",
}]))]
pub struct RateLimiting {
    /// One bucket for all callers together. It protects the server.
    pub shared: Option<RateLimitBucket>,
    /// One bucket for each authenticated caller. It keeps one caller from starving the others.
    pub per_user: Option<RateLimitBucket>,
    /// Further limits for single tools, on top of the ones above.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = list::by_name)]
    pub tools: Vec<ToolRateLimit>,
}

/// A token bucket: a call takes one token, and tokens come back evenly over time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RateLimitBucket {
    /// How many calls may be made at once from a full bucket.
    #[schemars(range(min = 1))]
    pub max_tokens: i32,
    /// How long an empty bucket takes to fill up, for example 1m. With maxTokens 60 and refillPeriod 1m, one token
    /// comes back each second.
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
    /// The tool, by the name that clients call it.
    #[schemars(length(min = 1))]
    pub name: String,
    /// One bucket for all callers of this tool together.
    pub shared: Option<RateLimitBucket>,
    /// One bucket for each authenticated caller of this tool.
    pub per_user: Option<RateLimitBucket>,
}
