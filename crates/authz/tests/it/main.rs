//! What policies decide, and what is said about them.

// clippy.toml allows these in test functions only. What test functions call fails tests in the same way.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod decisions;
mod documents;
mod fixture;
mod generated;
mod hostile;
mod matchers;
mod methods;
mod values;
mod warnings;
