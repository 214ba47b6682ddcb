//! The connection to real servers.

// Helpers of tests may panic, too.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod connection;
mod places;
