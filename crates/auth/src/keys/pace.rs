//! The intervals at which keys are fetched.

use std::time::Duration;

/// How often the keys of an issuer are fetched, and how long they are used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pace {
    /// The age at which keys are fetched again. A key that the issuer withdraws is trusted for this long.
    pub fresh: Duration,
    /// The age at which keys are no longer used if the issuer is unavailable.
    pub stale: Duration,
    /// The least time from the start of one fetch to that of the next.
    pub pause: Duration,
    /// The same for keys that are old and still usable.
    pub retry: Duration,
    /// How long a key that the issuer does not have is not fetched again.
    pub missing: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            fresh: Duration::from_secs(15 * 60),
            stale: Duration::from_secs(24 * 60 * 60),
            pause: Duration::from_secs(2),
            retry: Duration::from_secs(30),
            missing: Duration::from_secs(10),
        }
    }
}
