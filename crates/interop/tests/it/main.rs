//! The proxy, and a virtual server, between third-party clients and servers.

// A test panics where it fails.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod clients;
mod conformance;
mod joined;
mod programs;
mod proxied;
