//! How much memory bodies take, all together.
//!
//! A limit for each body is not enough: as many of them as there are connections would be far more than a pod has. Nor is one for all of
//! them: a caller with a few large ones that never end would keep everybody else out. So one caller has no more than the rest of the
//! budget that is free: half of it if there is no other, a third of it beside another one that takes as much, and so on. There is
//! always something left for the next one.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::identity::Holder;

/// What is counted at once.
const UNIT: usize = 1 << 10;
/// The beginning of a body that is not counted: most bodies are no longer, and cost nothing here.
const FREE: usize = 16 << 10;

/// The bytes that all bodies may take, or those of one caller.
#[derive(Clone)]
pub struct Budget {
    units: Arc<Units>,
    holder: Option<Holder>,
}

struct Units {
    free: Arc<Semaphore>,
    /// How many units callers have that have any.
    held: Mutex<HashMap<Holder, usize>>,
}

/// What one body takes of it, until it is dropped.
pub struct Share {
    budget: Budget,
    bytes: usize,
    taken: Option<OwnedSemaphorePermit>,
}

/// The budget is used up, or the caller's part of it.
#[derive(Debug)]
pub struct Exhausted;

impl Budget {
    /// A budget of this many bytes.
    pub fn new(bytes: usize) -> Self {
        let free = Arc::new(Semaphore::new(bytes / UNIT));
        Self { units: Arc::new(Units { free, held: Mutex::default() }), holder: None }
    }

    /// What a caller may have of it.
    pub fn part_of(&self, holder: Option<Holder>) -> Self {
        Self { units: self.units.clone(), holder }
    }

    /// A share of so many bytes, of which all are counted.
    pub fn take(&self, bytes: usize) -> Result<Share, Exhausted> {
        let mut share = self.share();
        share.bytes = FREE;
        share.grow(bytes)?;
        Ok(share)
    }

    /// The share of a body that has not been read yet.
    pub fn share(&self) -> Share {
        Share { budget: self.clone(), bytes: 0, taken: None }
    }
}

impl Units {
    /// Counts further units of a caller, if it may have them.
    fn hold(&self, holder: Holder, units: usize) -> Result<(), Exhausted> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let of_holder = held.get(&holder).copied().unwrap_or_default() + units;
        if of_holder + units > self.free.available_permits() {
            return Err(Exhausted);
        }
        held.insert(holder, of_holder);
        Ok(())
    }

    fn release(&self, holder: Holder, units: usize) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(of_holder) = held.get_mut(&holder) {
            *of_holder = of_holder.saturating_sub(units);
            if *of_holder == 0 {
                held.remove(&holder);
            }
        }
    }
}

impl Share {
    /// The share of another body of the same request.
    pub fn another(&self) -> Self {
        self.budget.share()
    }

    /// What the caller of that request may have of the same budget.
    pub(crate) fn part_of(&self, holder: Holder) -> Budget {
        self.budget.part_of(Some(holder))
    }

    /// Whether it takes anything: the beginning of a body does not.
    pub fn is_counted(&self) -> bool {
        self.taken.is_some()
    }

    /// Takes this much more. It does not wait: those that hold a part would wait for each other.
    pub fn grow(&mut self, bytes: usize) -> Result<(), Exhausted> {
        let holder = self.budget.holder;
        self.grow_of(bytes, || holder)
    }

    /// The same for a body of a caller, which is computed if it matters.
    pub(super) fn grow_of(
        &mut self,
        bytes: usize,
        holder: impl FnOnce() -> Option<Holder>,
    ) -> Result<(), Exhausted> {
        self.bytes += bytes;
        let units = self.bytes.saturating_sub(FREE).div_ceil(UNIT);
        let missing = units - self.taken();
        if missing == 0 {
            return Ok(());
        }
        if self.taken.is_none() {
            self.budget.holder = holder();
        }
        let permits = u32::try_from(missing).map_err(|_| Exhausted)?;
        let Budget { units, holder } = &self.budget;
        if let Some(holder) = *holder {
            units.hold(holder, missing)?;
        }
        let more = units.free.clone().try_acquire_many_owned(permits).map_err(|_| {
            if let Some(holder) = *holder {
                units.release(holder, missing);
            }
            Exhausted
        })?;
        match &mut self.taken {
            Some(taken) => taken.merge(more),
            None => self.taken = Some(more),
        }
        Ok(())
    }

    /// How many units it has.
    fn taken(&self) -> usize {
        self.taken.as_ref().map_or(0, OwnedSemaphorePermit::num_permits)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        if let Some(holder) = self.budget.holder.filter(|_| self.taken.is_some()) {
            self.budget.units.release(holder, self.taken());
        }
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

    #[test]
    fn a_caller_leaves_as_much_as_it_takes_for_others() {
        let budget = Budget::new(60 << 10);
        let share = |last: u8| budget.part_of(Some(Holder::new(None, [10, 0, 0, last].into()))).share();
        // In as many bodies as it likes.
        let (mut first, mut second) = (share(1), share(1));
        first.grow(FREE + (20 << 10)).unwrap();
        second.grow(FREE + (10 << 10)).unwrap();
        assert!(second.another().grow(FREE + 1).is_err(), "half of it is taken");
        // Another one may take half of what is left, and a third one half of that.
        let mut other = share(2);
        other.grow(FREE + (15 << 10)).unwrap();
        assert!(other.grow(1).is_err());
        share(3).grow(FREE + (7 << 10)).unwrap();
        // What ends is free again, and nothing is remembered.
        drop((first, second));
        other.grow(7 << 10).unwrap();
        drop(other);
        let all = budget.take(60 << 10).unwrap();
        assert!(budget.take(1).is_err());
        drop(all);
        assert_eq!(budget.units.free.available_permits(), 60);
        assert!(budget.units.held.lock().unwrap().is_empty());
    }
}
