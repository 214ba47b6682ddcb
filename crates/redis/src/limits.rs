//! Every number of a connection to Redis.

use std::time::Duration;

/// How long requests fail immediately after one failed to connect, or after Redis did not respond.
pub(crate) const PAUSE: Duration = Duration::from_millis(500);
/// How often a command is sent at most. After a failover or in a cluster, the first node may be the wrong
/// one.
pub(crate) const TRIES: usize = 3;
/// How long a Redis that starts together with its client may take to become available.
pub(crate) const START_TIME: Duration = Duration::from_secs(10);
/// The shortest time between two log lines about failures.
pub(crate) const LOG_PAUSE: Duration = Duration::from_secs(10);
