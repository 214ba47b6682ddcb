//! How often keys are fetched.

use std::time::Duration;

/// How often the keys of an issuer are fetched, and how long they are used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pace {
    /// How old keys become before they are fetched again. One that the issuer takes back is believed for this long.
    pub fresh: Duration,
    /// How old keys become while the issuer cannot be reached, before they are not used any more.
    pub stale: Duration,
    /// From the beginning of one fetch to that of the next, at least.
    pub pause: Duration,
    /// The same where the keys are old and still serve.
    pub retry: Duration,
    /// How long a key that the issuer does not have is not looked for again.
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
