//! MCP messages: what is parsed, what is rejected, and that the rest stays byte for byte.

// A test panics where it fails.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod arbitrary;
mod envelope;
mod fuzz;
mod header;
mod hostile;
mod list;
mod reply;
mod revision;
mod rewrite;
mod session_id;
mod splice;
mod sse;
mod stdio;
