//! The heap: memory that the allocator keeps although nothing uses it.
//!
//! The allocator of glibc returns little of what was freed: there is nearly always something in use behind it. A virtual server
//! whose ten thousand sessions had ended was as large as with them, at 114 MB instead of 27 MB.

/// Returns memory that nothing uses to the system.
///
/// This takes milliseconds, in which other threads may wait for memory, so it is for the time after much was freed. Where the
/// allocator is not that of glibc, nothing happens.
pub fn release_heap() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    #[expect(unsafe_code, reason = "a function of C")]
    // SAFETY: it has no preconditions; every thread may call it at any time.
    unsafe {
        libc::malloc_trim(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{alone, resident};

    #[test]
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    fn memory_between_what_is_in_use_is_returned() {
        let _alone = alone();
        let mut all: Vec<Box<[u8; 4096]>> = (0..20_000).map(|_| Box::new([1; 4096])).collect();
        let full = resident();
        let mut number = 0;
        all.retain(|_| {
            number += 1;
            number % 100 == 0
        });
        let kept = resident();
        assert!(kept > full / 2, "the allocator returned it by itself: {kept} of {full}");
        release_heap();
        let released = resident();
        assert!(released < kept / 2, "{released} of {kept}");
        assert_eq!(all.len(), 200);
    }
}
