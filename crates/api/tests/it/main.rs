//! The API as the API server enforces it.

// A test panics when an expectation fails.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod admission;
mod compat;
mod constraints;
mod crds;
mod documented;
mod files;
mod specimens;
