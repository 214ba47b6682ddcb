//! The proxy between third-party clients and servers.

// A test stops at the spot when something is not as it should be.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod clients;
mod conformance;
mod programs;
mod proxied;
