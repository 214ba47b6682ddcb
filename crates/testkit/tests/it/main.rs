//! Tests of the test kit.

// A test panics where it fails.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod ci;
mod counting;
mod disturbing;
mod processes;
mod workloads;
