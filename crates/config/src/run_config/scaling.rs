//! The number of servers, and the store of their sessions.

use serde::{Deserialize, Serialize};
use serde_with::apply;

use crate::zero::zero;

/// The number of servers, and the store of their sessions.
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct Scaling {
    /// The number of the server's pods. Without it, the number is left to others, such as an autoscaler.
    pub backend_replicas: Option<i32>,
    /// The Redis that stores sessions. Without it, they are in the proxy's memory.
    pub session_redis: Option<SessionRedis>,
}

/// The Redis that stores sessions. Its password is in
/// [`SESSION_REDIS_PASSWORD`](crate::env::SESSION_REDIS_PASSWORD).
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct SessionRedis {
    /// Its address, as `host:port` or as a URL, which says whether it has TLS, Sentinels or a cluster.
    #[serde_with(skip_apply)]
    pub address: String,
    /// The number of the database.
    pub db: i32,
    /// A prefix for every key. It ends with a colon.
    pub key_prefix: String,
}
