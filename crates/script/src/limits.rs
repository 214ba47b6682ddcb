//! What a script may use.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use crate::error::{Checked, Fault};

/// What one script may use.
#[derive(Clone, Debug)]
pub struct Limits {
    /// The longest source, in bytes.
    pub source: usize,
    /// How many steps of computation it may take. Work on many values or bytes at once counts as several.
    pub steps: u64,
    /// How many bytes its values may have.
    pub memory: usize,
    /// How many bytes its result may have as JSON, and likewise what it prints.
    pub output: usize,
    /// How deep calls of its functions may be nested.
    pub depth: usize,
    /// How many tools it may call at the same time.
    pub parallel: usize,
    /// How many tools it may call in all.
    pub calls: usize,
    /// How long a call may take.
    pub call_time: Duration,
    /// How long the script may take.
    pub script_time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            source: 256 << 10,
            steps: 100_000,
            memory: 32 << 20,
            output: 1 << 20,
            depth: 64,
            parallel: 10,
            calls: 1_000,
            call_time: Duration::from_secs(30),
            script_time: Duration::from_secs(60),
        }
    }
}

/// The memory that all scripts of a process share.
#[derive(Clone, Debug)]
pub struct Pool(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    size: usize,
    used: AtomicUsize,
    /// The pool that this one is a part of.
    whole: Option<Pool>,
}

impl Pool {
    /// One with this many bytes.
    pub fn new(size: usize) -> Self {
        Self(Arc::new(Shared { size, used: AtomicUsize::new(0), whole: None }))
    }

    /// A part of it, for some of its scripts: they use no more than this many bytes.
    pub fn part(&self, size: usize) -> Self {
        Self(Arc::new(Shared { size, used: AtomicUsize::new(0), whole: Some(self.clone()) }))
    }

    /// How many bytes are in use.
    pub fn used(&self) -> usize {
        self.0.used.load(Ordering::Relaxed)
    }

    fn take(&self, bytes: usize) -> bool {
        let used = self.0.used.fetch_add(bytes, Ordering::Relaxed);
        let fits = used.saturating_add(bytes) <= self.0.size;
        let is_taken = fits && self.0.whole.as_ref().is_none_or(|whole| whole.take(bytes));
        if !is_taken {
            self.0.used.fetch_sub(bytes, Ordering::Relaxed);
        }
        is_taken
    }

    fn put_back(&self, bytes: usize) {
        self.0.used.fetch_sub(bytes, Ordering::Relaxed);
        if let Some(whole) = &self.0.whole {
            whole.put_back(bytes);
        }
    }
}

/// How much a script takes of the pool at once.
const CHUNK: usize = 256 << 10;

/// What a script has taken of the pool. It is returned when the script ends.
#[derive(Debug)]
pub(crate) struct Lease {
    pool: Pool,
    taken: usize,
}

impl Lease {
    pub(crate) fn new(pool: Pool) -> Self {
        Self { pool, taken: 0 }
    }

    /// Takes so much that the script has this many bytes.
    pub(crate) fn grow_to(&mut self, bytes: usize) -> Checked<()> {
        if bytes <= self.taken {
            return Ok(());
        }
        let more = (bytes - self.taken).next_multiple_of(CHUNK);
        if !self.pool.take(more) {
            return Err(Fault::new(
                "too many scripts are running: the memory for scripts is used up. Try again later",
            ));
        }
        self.taken += more;
        Ok(())
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.pool.put_back(self.taken);
    }
}
