//! Convergence on a real API server.

// A test panics when an expectation fails.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod apply;
mod custom_resource;
mod fixture;
mod plan;
mod takeover;
