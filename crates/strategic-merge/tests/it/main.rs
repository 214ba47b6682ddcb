//! What a strategic merge patch does to a pod template, here and on a real API server.

mod arbitrary;
mod cases;
mod generated;
mod openapi;
mod patches;
mod server;
mod specification;
mod types;
