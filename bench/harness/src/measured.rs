//! How long requests took.

use std::time::Duration;

/// Requests that were sent for some time.
#[derive(Debug)]
pub struct Measured {
    elapsed: Duration,
    /// How long each request took, sorted.
    times: Vec<Duration>,
}

impl Measured {
    /// These requests.
    pub fn new(elapsed: Duration, mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        Self { elapsed, times }
    }

    /// How many there were.
    pub fn count(&self) -> usize {
        self.times.len()
    }

    /// How many there were in a second.
    pub fn rate(&self) -> f64 {
        self.times.len() as f64 / self.elapsed.as_secs_f64()
    }

    /// The time that this share of the requests did not exceed.
    pub fn at(&self, share: f64) -> Duration {
        let index = (self.times.len() as f64 * share) as usize;
        self.times.get(index.min(self.times.len().saturating_sub(1))).copied().unwrap_or_default()
    }
}
