//! Sessions and rate limits, which replicas share.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_with::apply;

use crate::{duration, zero::zero};

/// The store of sessions. Its password is in the environment.
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct SessionStorage {
    /// The type: `memory` or `redis`.
    #[serde_with(skip_apply)]
    pub provider: String,
    /// The address of Redis, as `host:port`.
    pub address: String,
    /// The number of the database.
    pub db: i32,
    /// A prefix for every key.
    pub key_prefix: String,
}

/// The rate limits of tool calls.
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct RateLimits {
    /// One bucket for all callers together.
    pub shared: Option<Bucket>,
    /// One bucket for each caller.
    pub per_user: Option<Bucket>,
    /// Further limits for single tools.
    pub tools: Vec<ToolLimits>,
}

/// A token bucket.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Bucket {
    /// The capacity of the bucket.
    pub max_tokens: i32,
    /// The time in which an empty bucket is refilled.
    pub refill_period: RefillPeriod,
}

/// A duration below a key of its own: Go's YAML encoder writes a Kubernetes duration so.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct RefillPeriod {
    /// The time.
    #[serde(with = "duration::text")]
    pub duration: Duration,
}

/// Limits for one tool.
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct ToolLimits {
    /// The tool.
    #[serde_with(skip_apply)]
    pub name: String,
    /// One bucket for all callers together.
    pub shared: Option<Bucket>,
    /// One bucket for each caller.
    pub per_user: Option<Bucket>,
}
