//! What the benchmarks of programs that listen share: processes whose memory and processor time are measured, and MCP clients
//! that call them.

mod client;
mod load;
mod measured;
mod process;

pub use client::{Client, Connection};
pub use load::load;
pub use measured::Measured;
pub use process::{Running, free_port};
