//! How many steps a thread of a script may still take.

use crate::error::{Checked, Fault};

/// How many bytes that are processed count as one step, and how many of them one value is worth.
const BYTES: u64 = 2_048;
const VALUE: usize = 32;

/// The steps of one thread.
#[derive(Debug)]
pub(crate) struct Meter {
    /// How many steps there are.
    pub(crate) limit: u64,
    pub(crate) used: u64,
    /// The bytes that were processed since the last step.
    bytes: u64,
}

impl Meter {
    pub(crate) fn new(limit: u64) -> Self {
        Self { limit, used: 0, bytes: 0 }
    }

    /// Counts steps.
    pub(crate) fn step(&mut self, count: u64) -> Checked<()> {
        self.used = self.used.saturating_add(count);
        if self.used > self.limit {
            return Err(Fault::new(format!(
                "the script takes too many steps: it may take {}. Call fewer tools or process less at once",
                self.limit
            )));
        }
        Ok(())
    }

    /// Counts work on this many values.
    pub(crate) fn work(&mut self, values: usize) -> Checked<()> {
        self.bytes(values.saturating_mul(VALUE))
    }

    /// Counts work on this many bytes.
    pub(crate) fn bytes(&mut self, count: usize) -> Checked<()> {
        self.bytes = self.bytes.saturating_add(count as u64);
        let steps = self.bytes / BYTES;
        self.bytes %= BYTES;
        self.step(steps)
    }

    pub(crate) fn left(&self) -> u64 {
        self.limit.saturating_sub(self.used)
    }
}
