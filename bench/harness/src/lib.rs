//! What the benchmarks share: programs whose memory and processor time are measured, and MCP clients that call them.

mod client;
mod load;
mod measured;
mod print;
mod process;
mod program;
mod usage;

pub use client::{Client, Connection};
pub use load::load;
pub use measured::Measured;
pub use print::{ended, print_row};
pub use process::{Running, free_port};
pub use program::Program;
pub use usage::{Usage, busy, ensure_flat};
