//! Files as they are on disk.

// clippy.toml allows these in test functions only. What test functions call fails tests in the same way.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod compat;
mod files;
