//! The program itself: its code, and constants.
//!
//! Nearly all memory of an idle proxy is code. Most of that ran once, at the start, or has only been mapped because the kernel maps 16 pages
//! at a time. It stays mapped until the system lacks memory.

use std::{env, fs, ops::Range};

/// Unmaps the code of the program. What is still used is mapped again when it runs, from the cache of the file, in microseconds.
///
/// This is for the time after the start. Where the system is not Linux, nothing happens.
pub fn release_code() {
    let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let Ok(program) = env::current_exe() else { return };
    for pages in program.to_str().into_iter().flat_map(|program| unchanged(&maps, program)) {
        #[cfg(target_os = "linux")]
        #[expect(unsafe_code, reason = "a function of C")]
        // SAFETY: the pages are those of a file that cannot be written through this mapping, so they are the same when they are mapped again.
        unsafe {
            libc::madvise(pages.start as *mut libc::c_void, pages.len(), libc::MADV_DONTNEED);
        }
    }
}

/// The mappings of a file that are as in the file: code, and the first of those that are only read. The others were relocated.
fn unchanged<'a>(maps: &'a str, file: &'a str) -> impl Iterator<Item = Range<usize>> + 'a {
    maps.lines().filter_map(move |line| {
        let mut fields = line.split_ascii_whitespace();
        let (range, permissions, offset) = (fields.next()?, fields.next()?, fields.next()?);
        let is_unchanged = match permissions {
            "r-xp" => true,
            "r--p" => offset.bytes().all(|digit| digit == b'0'),
            _ => false,
        };
        if !is_unchanged || fields.nth(2)? != file {
            return None;
        }
        let (start, end) = range.split_once('-')?;
        Some(usize::from_str_radix(start, 16).ok()?..usize::from_str_radix(end, 16).ok()?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{alone, resident};

    #[test]
    fn only_what_cannot_have_been_changed_is_unmapped() {
        let maps = "\
1000-5000 r--p 00000000 fe:00 42 /skep
5000-9000 r-xp 00004000 fe:00 42 /skep
9000-a000 r--p 00008000 fe:00 42 /skep
a000-b000 rw-p 00009000 fe:00 42 /skep
b000-c000 rw-p 00000000 00:00 0 [heap]
c000-d000 r-xp 00000000 fe:00 43 /lib/libc.so.6
d000-e000 r-xp 00000000 00:00 0 [vdso]
";
        assert_eq!(unchanged(maps, "/skep").collect::<Vec<_>>(), [0x1000..0x5000, 0x5000..0x9000]);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_program_runs_on_with_less_memory() {
        let _alone = alone();
        let words: Vec<String> = (0..100).map(|number| format!("{number:03}")).collect();
        let before = resident();
        release_code();
        let after = resident();
        assert!(after < before, "{after} of {before}");
        assert_eq!(words.join(",").len(), 399);
    }
}
