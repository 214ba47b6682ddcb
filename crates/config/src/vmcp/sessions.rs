//! What the replicas share: sessions, and counts of calls.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_with::apply;

use crate::{duration, zero::zero};

/// Where sessions are kept. The password is in the environment.
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct SessionStorage {
    /// Where: `memory` or `redis`.
    #[serde_with(skip_apply)]
    pub provider: String,
    /// The address of Redis, as `host:port`.
    pub address: String,
    /// The number of the database.
    pub db: i32,
    /// A prefix for every key.
    pub key_prefix: String,
}

/// How often tools may be called.
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
    /// How many calls may be made at once from a full bucket.
    pub max_tokens: i32,
    /// How long an empty bucket takes to fill up.
    pub refill_period: RefillPeriod,
}

/// A duration that stands below a key of its own: so Go's YAML encoder writes a Kubernetes duration.
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
