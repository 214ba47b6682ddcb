//! What is measured of a request while it is processed.

use std::time::Duration;

use ::http::StatusCode;
use prometheus_client::encoding::EncodeLabelSet;
use skep_redis::Cause;

use crate::http::Ended;

/// The measurements of one request, which end when it is dropped.
pub trait RequestMetrics: Send + Sync {
    /// The rate limits of the request were checked, which took this long.
    fn rate_limited(&self, limits: &RateLimited, checked: &Checked<'_>, took: Duration);

    /// The response has started.
    fn responded(&self, status: StatusCode);

    /// The response has ended.
    fn ended(&self, end: Ended);
}

/// Whose limits they are.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct RateLimited {
    /// The namespace of the server.
    pub namespace: String,
    /// The name of the server.
    pub server: String,
}

/// What a bucket limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// All calls of all callers.
    Shared,
    /// The calls of one tool.
    SharedTool,
    /// The calls of one caller.
    PerUser,
    /// The calls of one tool by one caller.
    PerUserTool,
}

/// What the buckets decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Each had a token.
    Allowed,
    /// One had none.
    Rejected,
}

/// The result of checking the buckets of a call.
pub enum Checked<'a> {
    /// These decided: all of them that the call is allowed, or the first that had no token that it is not.
    Decided(Decision, &'a [Scope]),
    /// Redis is unavailable, and the call is allowed.
    Unknown(Cause),
}
