//! The test kit, tried out.

// A test stops at the spot when something is not as it should be.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod counting;
mod disturbing;
mod processes;
mod workloads;
