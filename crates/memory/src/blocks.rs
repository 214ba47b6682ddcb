//! Blocks of memory that are allocated and freed again and again.
//!
//! The allocator of glibc keeps blocks of up to a kilobyte for each thread. Larger ones are taken from its heap each time, under a
//! lock, and joined with their neighbours when they are freed. A call through a proxy has several of these: what was read from the
//! client and from the server, and their headers. Here a thread keeps blocks of up to 16 kB, and takes them in fewer instructions.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::RefCell,
    ptr::{self, NonNull},
};

/// No larger blocks are kept.
const LARGEST: usize = 16 << 10;
/// How many bytes a thread keeps.
const KEPT: usize = 128 << 10;
/// Blocks with a stricter alignment are not kept.
const ALIGNMENT: usize = 16;
/// Sizes are rounded up, so that there are few: up to this to those of glibc, which has eight bytes before each block, and above it to
/// the next quarter of a kilobyte.
const SMALL: usize = 1032;
const STEP: usize = 256;
const SMALL_SIZES: usize = SMALL / 16;
const SIZES: usize = SMALL_SIZES + (LARGEST - SMALL) / STEP + 1;

/// The allocator of the system, with some blocks that each thread keeps for its next allocation.
pub struct Allocator;

thread_local! {
    static BLOCKS: RefCell<Blocks> = const { RefCell::new(Blocks { free: [None; SIZES], bytes: 0 }) };
}

/// The blocks that a thread keeps, by size.
struct Blocks {
    /// The last one that was freed. Each has the one before in its first bytes.
    free: [Option<NonNull<Free>>; SIZES],
    bytes: usize,
}

/// A block that is kept.
struct Free {
    before: Option<NonNull<Free>>,
}

/// A size, rounded up, and its place among all sizes, if blocks of this size are kept.
fn rounded(size: usize) -> (usize, Option<usize>) {
    if size > LARGEST {
        (size, None)
    } else if size > SMALL {
        let steps = size.div_ceil(STEP);
        (steps * STEP, Some(SMALL_SIZES + steps - SMALL.div_ceil(STEP)))
    } else {
        let number = ((size + 7) / 16).max(1);
        (number * 16 + 8, Some(number - 1))
    }
}

/// The layout that a block has at the allocator of the system, and its place, if it is kept.
fn of_system(layout: Layout) -> (Layout, Option<usize>) {
    let (size, place) = rounded(layout.size());
    match Layout::from_size_align(size, ALIGNMENT) {
        Ok(rounded) if layout.align() <= ALIGNMENT => (rounded, place),
        _ => (layout, None),
    }
}

impl Blocks {
    fn take(&mut self, size: usize, place: usize) -> Option<NonNull<Free>> {
        let block = self.free[place]?;
        #[expect(unsafe_code, reason = "the list is in the blocks")]
        // SAFETY: a block in the list was written by `put`, and nothing else has it.
        let before = unsafe { block.as_ref() }.before;
        self.free[place] = before;
        self.bytes -= size;
        Some(block)
    }

    /// Keeps a block, or returns `false` if there are enough.
    fn put(&mut self, block: NonNull<Free>, size: usize, place: usize) -> bool {
        if self.bytes + size > KEPT {
            return false;
        }
        #[expect(unsafe_code, reason = "the list is in the blocks")]
        // SAFETY: the block was freed, so nothing else has it. It is aligned, and larger than what is written.
        unsafe {
            block.write(Free { before: self.free[place] });
        }
        self.free[place] = Some(block);
        self.bytes += size;
        true
    }
}

/// A thread that ends keeps nothing.
impl Drop for Blocks {
    fn drop(&mut self) {
        for size in (1..=LARGEST).step_by(ALIGNMENT) {
            let (size, Some(place)) = rounded(size) else { continue };
            let Ok(layout) = Layout::from_size_align(size, ALIGNMENT) else { continue };
            while let Some(block) = self.take(size, place) {
                #[expect(unsafe_code, reason = "it returns memory")]
                // SAFETY: a block in the list was allocated by the system with the layout of its place.
                unsafe {
                    System.dealloc(block.as_ptr().cast(), layout);
                }
            }
        }
    }
}

#[expect(unsafe_code, reason = "it allocates memory")]
// SAFETY: each block is one of `System` with the layout `of_system`, which depends on the requested layout alone, and is as large and
// aligned as that or more. A block that is kept was freed, so it belongs to nobody, and is removed from the list before it is returned.
// Where a thread ends, and has nothing that is kept any more, `System` allocates and frees.
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let (layout, place) = of_system(layout);
        let take = |place| BLOCKS.try_with(|blocks| blocks.borrow_mut().take(layout.size(), place));
        match place.map(take) {
            Some(Ok(Some(block))) => block.as_ptr().cast(),
            // SAFETY: as large as the caller's layout, or larger.
            _ => unsafe { System.alloc(layout) },
        }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        let (layout, place) = of_system(layout);
        let put =
            |(place, freed)| BLOCKS.try_with(|blocks| blocks.borrow_mut().put(freed, layout.size(), place));
        if place.zip(NonNull::new(block.cast())).map(put) != Some(Ok(true)) {
            // SAFETY: it was allocated with this layout.
            unsafe { System.dealloc(block, layout) }
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as large as the caller's layout, or larger. The system knows of new memory that it is zero.
        unsafe { System.alloc_zeroed(of_system(layout).0) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let Ok(wanted) = Layout::from_size_align(size, layout.align()) else { return ptr::null_mut() };
        let ((old, _), (new, _)) = (of_system(layout), of_system(wanted));
        if old == new {
            return block;
        }
        // SAFETY: it was allocated with the old layout, and the new one has the same alignment.
        unsafe { System.realloc(block, old, new.size()) }
    }
}

#[cfg(test)]
mod tests {
    use std::{hint::black_box, thread};

    use super::*;
    use crate::tests::{alone, resident};

    fn kept_bytes() -> usize {
        BLOCKS.with_borrow(|blocks| blocks.bytes)
    }

    #[test]
    fn sizes_are_rounded_up_to_few() {
        let mut last = (0, None);
        let mut places = 0;
        for size in 1..=LARGEST {
            let (larger, place) = rounded(size);
            assert!(larger >= size && larger < size + 24.max(size / 4), "{size}: {larger}");
            assert!((larger, place) >= last, "{size}");
            assert_eq!(rounded(larger), (larger, place), "{size}");
            places += usize::from(place != last.1);
            assert_eq!(place, Some(places - 1), "{size}");
            last = (larger, place);
        }
        assert_eq!(places, SIZES);
        assert_eq!(rounded(LARGEST + 1), (LARGEST + 1, None));
    }

    #[test]
    fn a_block_is_used_again_for_the_same_size_and_no_other() {
        for size in [48, 100, SMALL, SMALL + 1, 1500, 4096, 8192, LARGEST] {
            let first = Vec::<u8>::with_capacity(size);
            let address = first.as_ptr();
            drop(first);
            assert!(kept_bytes() >= size);
            let other = Vec::<u8>::with_capacity(size / 2);
            let again = Vec::<u8>::with_capacity(size);
            assert_eq!(again.as_ptr(), address, "{size}");
            assert_ne!(other.as_ptr(), address, "{size}");
        }
        let before = kept_bytes();
        for size in [LARGEST + 1, 1 << 20] {
            drop(black_box(Vec::<u8>::with_capacity(size)));
        }
        #[repr(align(64))]
        struct Aligned([u8; 4096]);
        assert_eq!(black_box(Box::new(Aligned([1; 4096]))).0[4095], 1);
        assert_eq!(kept_bytes(), before);
    }

    #[test]
    fn what_is_in_a_block_stays_as_it_was_written_while_others_come_and_go() {
        let _alone = alone();
        let mut state = 1_u64;
        let mut random = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize
        };
        let mut blocks: Vec<(u8, Vec<u8>)> = Vec::new();
        for round in 0..50_000 {
            let (byte, size) = ((round % 251) as u8, random() % (20 << 10));
            match random() % 5 {
                // From zeroed memory, and from other memory.
                0 => blocks.push((0, vec![0; size])),
                1 => blocks.push((byte, [byte].repeat(size))),
                2 | 3 if !blocks.is_empty() => {
                    let (byte, block) = blocks.swap_remove(random() % blocks.len());
                    assert!(block.iter().all(|found| *found == byte));
                }
                _ => {
                    if let Some((byte, block)) = blocks.last_mut() {
                        block.resize(size, *byte);
                        block.shrink_to_fit();
                    }
                }
            }
        }
        assert!(blocks.iter().all(|(byte, block)| block.iter().all(|found| found == byte)));
    }

    #[test]
    fn a_thread_keeps_little_and_nothing_when_it_has_ended() {
        let _alone = alone();
        let free_many = || {
            let blocks: Vec<_> = (0..100).map(|_| black_box(vec![1_u8; 8192])).collect();
            drop(blocks);
            kept_bytes()
        };
        let kept = thread::spawn(free_many).join().unwrap();
        assert!((KEPT - 8192..=KEPT).contains(&kept), "{kept}");
        let before = resident();
        for _ in 0..500 {
            thread::spawn(free_many).join().unwrap();
        }
        // In pages: all of them would keep 16,000.
        assert!(resident() < before + 4_000, "{before} and {}", resident());
    }
}
