//! The MCP wire: what is read of it, what is refused, and that the rest stays byte for byte.

// A test stops at the spot when something is not as it should be.
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
