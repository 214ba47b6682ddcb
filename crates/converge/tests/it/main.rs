//! Convergence on a real API server.

mod apply;
mod custom_resource;
mod fixture;
mod takeover;
