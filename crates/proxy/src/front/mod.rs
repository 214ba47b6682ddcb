//! The proxy as an HTTP service, its routes, and its server.

mod middlewares;
mod proxy;
mod routes;
mod server;

pub use proxy::{Configured, Proxy};
