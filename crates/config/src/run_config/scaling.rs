//! How many servers there are, and where their sessions are kept.

use serde::{Deserialize, Serialize};
use serde_with::apply;

use crate::zero::zero;

/// How many servers there are, and where their sessions are kept.
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct Scaling {
    /// How many pods of the server there are. Without it, someone else decides, an autoscaler perhaps.
    pub backend_replicas: Option<i32>,
    /// The Redis that keeps sessions. Without it, they are in the proxy's memory.
    pub session_redis: Option<SessionRedis>,
}

/// The Redis that keeps sessions. Its password is in
/// [`SESSION_REDIS_PASSWORD`](crate::env::SESSION_REDIS_PASSWORD).
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct SessionRedis {
    /// Its address, as `host:port`.
    #[serde_with(skip_apply)]
    pub address: String,
    /// The number of the database.
    pub db: i32,
    /// A prefix for every key. It ends with a colon.
    pub key_prefix: String,
}
