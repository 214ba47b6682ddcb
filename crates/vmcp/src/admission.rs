//! How many of something each caller runs at the same time.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicUsize, Ordering},
    },
};

use skep_gateway::sessions::Holder;

/// What each caller runs, with what all of its runs share.
pub(crate) struct Admission<T>(Mutex<HashMap<Holder, Weak<Share<T>>>>);

/// What one caller runs.
struct Share<T> {
    shared: T,
    running: AtomicUsize,
}

/// Something that may run.
pub(crate) struct Admitted<T>(Arc<Share<T>>);

impl<T> Default for Admission<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> Admission<T> {
    /// Lets one more of this caller run, unless that many do. `new` is what the runs of a caller share.
    pub(crate) fn admit(&self, holder: Holder, most: usize, new: impl FnOnce() -> T) -> Option<Admitted<T>> {
        let mut shares = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let share = shares.get(&holder).and_then(Weak::upgrade).unwrap_or_else(|| {
            shares.retain(|_, share| share.strong_count() > 0);
            let share = Arc::new(Share { shared: new(), running: AtomicUsize::new(0) });
            shares.insert(holder, Arc::downgrade(&share));
            share
        });
        if share.running.fetch_add(1, Ordering::Relaxed) >= most {
            share.running.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        Some(Admitted(share))
    }
}

impl<T> Admitted<T> {
    /// What all runs of its caller share.
    pub(crate) fn shared(&self) -> &T {
        &self.0.shared
    }
}

impl<T> Drop for Admitted<T> {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::Relaxed);
    }
}
