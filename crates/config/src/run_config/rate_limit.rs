//! Rate limits of tool calls.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_with::apply;

use crate::{duration, zero::zero};

/// Rate limits of tool calls. A call passes if every bucket that applies to it has a token left.
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct RateLimits {
    /// One bucket for all callers together.
    pub shared: Option<RateLimitBucket>,
    /// One bucket for each caller.
    pub per_user: Option<RateLimitBucket>,
    /// Further limits for single tools.
    pub tools: Vec<ToolRateLimit>,
}

/// A token bucket: a call takes one token, and tokens are refilled evenly over time.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RateLimitBucket {
    /// The capacity of the bucket.
    pub max_tokens: u32,
    /// The time in which an empty bucket is refilled.
    #[serde(with = "duration::text")]
    pub refill_period: Duration,
}

/// Limits for one tool.
#[apply(_ => #[serde(default, skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolRateLimit {
    /// The tool.
    #[serde_with(skip_apply)]
    pub name: String,
    /// One bucket for all callers together.
    pub shared: Option<RateLimitBucket>,
    /// One bucket for each caller.
    pub per_user: Option<RateLimitBucket>,
}
