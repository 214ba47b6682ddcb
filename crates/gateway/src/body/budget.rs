//! How much memory bodies take, all together.
//!
//! A limit for each body is not enough: as many of them as there are connections would be far more than a pod has.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// What is counted at once.
const UNIT: usize = 1 << 10;
/// The beginning of a body that is not counted: most bodies are no longer, and cost nothing here.
const FREE: usize = 16 << 10;

/// The bytes that all bodies may take.
#[derive(Clone)]
pub struct Budget(Arc<Semaphore>);

/// What one body takes of it, until it is dropped.
pub struct Share {
    budget: Budget,
    bytes: usize,
    taken: Option<OwnedSemaphorePermit>,
}

/// The budget is used up.
#[derive(Debug)]
pub struct Exhausted;

impl Budget {
    /// A budget of this many bytes.
    pub fn new(bytes: usize) -> Self {
        Self(Arc::new(Semaphore::new(bytes / UNIT)))
    }

    /// The share of a body that has not been read yet.
    pub fn share(&self) -> Share {
        Share { budget: self.clone(), bytes: 0, taken: None }
    }
}

impl Share {
    /// The share of another body of the same request.
    pub fn another(&self) -> Self {
        self.budget.share()
    }

    /// Whether it takes anything: the beginning of a body does not.
    pub fn is_counted(&self) -> bool {
        self.taken.is_some()
    }

    /// Takes this much more. It does not wait: those that hold a part would wait for each other.
    pub fn grow(&mut self, bytes: usize) -> Result<(), Exhausted> {
        self.bytes += bytes;
        let units = self.bytes.saturating_sub(FREE).div_ceil(UNIT);
        let missing = units - self.taken.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        if missing == 0 {
            return Ok(());
        }
        let missing = u32::try_from(missing).map_err(|_| Exhausted)?;
        let more = self.budget.0.clone().try_acquire_many_owned(missing).map_err(|_| Exhausted)?;
        match &mut self.taken {
            Some(taken) => taken.merge(more),
            None => self.taken = Some(more),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_bodies_share_what_there_is_and_small_ones_always_pass() {
        let budget = Budget::new(64 << 10);
        let mut first = budget.share();
        for _ in 0..4 {
            first.grow(16 << 10).unwrap();
        }
        let mut second = budget.share();
        second.grow(FREE + (16 << 10)).unwrap();
        assert!(second.grow(1).is_err(), "all is taken");
        let mut small = budget.share();
        small.grow(FREE).unwrap();
        drop(first);
        second.grow(32 << 10).unwrap();
    }
}
