//! The proxy as an HTTP service, its routes, and its server.

mod middlewares;
mod proxy;
mod routes;
mod server;

pub(crate) use middlewares::middlewares;
pub(crate) use proxy::context;
pub use proxy::{Configured, Proxy};
