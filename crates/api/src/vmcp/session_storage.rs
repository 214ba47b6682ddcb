//! The storage of MCP sessions.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::{apply, skip_serializing_none};

use crate::{unset, workload::SessionProvider};

/// Where sessions are stored. The password of Redis is taken from the environment variable
/// THV_SESSION_REDIS_PASSWORD.
#[apply(
    Option<String> => #[serde(default, deserialize_with = "unset::non_zero")],
    Option<i32> => #[serde(default, deserialize_with = "unset::non_zero")],
)]
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionStorageConfig {
    /// Where sessions are stored.
    pub provider: SessionProvider,
    /// The address of Redis, as host:port. Needed with provider redis. For TLS, rediss://host:port; for
    /// Sentinels, redis+sentinel://host:port,host:port/primary; for a cluster, redis+cluster://host:port.
    pub address: Option<String>,
    /// The number of the Redis database.
    #[schemars(range(min = 0), extend("default" = 0))]
    pub db: Option<i32>,
    /// A prefix for every key, ending in a colon. The default is "thv:vmcp:session:".
    pub key_prefix: Option<String>,
}
