//! Decisions, errors and warnings.

// clippy.toml allows these in test functions only. Helpers of tests may panic, too.
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
