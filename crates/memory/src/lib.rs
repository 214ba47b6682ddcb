//! Memory: what is used again and again is kept, and what nothing uses is returned to the system.
//!
//! This crate is the only one of skep that has code which is not safe Rust.

mod blocks;
mod code;
mod heap;

pub use blocks::Allocator;
pub use code::release_code;
pub use heap::release_heap;

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, MutexGuard, PoisonError};

    use super::Allocator;

    #[global_allocator]
    static ALLOCATOR: Allocator = Allocator;

    /// One test measures at a time, as all are in one process.
    pub(crate) fn alone() -> MutexGuard<'static, ()> {
        static MEASURING: Mutex<()> = Mutex::new(());
        MEASURING.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The memory of this process, in pages.
    pub(crate) fn resident() -> usize {
        let text = std::fs::read_to_string("/proc/self/statm").unwrap();
        text.split(' ').nth(1).unwrap().parse().unwrap()
    }
}
