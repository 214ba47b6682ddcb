//! What a strategic merge patch does to a pod template, here and on a real API server.

mod cases;
mod openapi;
mod server;
mod specification;
mod types;
