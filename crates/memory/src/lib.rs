//! Memory that nothing uses is returned to the system.
//!
//! The calls of this crate are the only ones of skep that are not safe Rust.

mod code;
mod heap;

pub use code::release_code;
pub use heap::release_heap;

#[cfg(test)]
mod tests {
    /// The memory of this process, in pages.
    pub(crate) fn resident() -> usize {
        let text = std::fs::read_to_string("/proc/self/statm").unwrap();
        text.split(' ').nth(1).unwrap().parse().unwrap()
    }
}
