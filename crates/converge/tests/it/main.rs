//! Convergence on a real API server.

// A test stops at the spot when something is not as it should be.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod apply;
mod custom_resource;
mod fixture;
mod plan;
mod takeover;
