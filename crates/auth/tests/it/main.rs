//! Tokens of a real identity provider, checked over real connections on loopback.

// A test stops at the spot when something is not as it should be.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod exchange;
mod fixture;
mod introspection;
mod keys;
mod network;
mod sts;
mod tokens;
