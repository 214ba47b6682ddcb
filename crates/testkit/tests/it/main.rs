//! The test kit, tried out.

mod counting;
mod disturbing;
mod processes;
mod workloads;
