//! The proxy as an HTTP service, its routes, and its server.

mod middlewares;
mod proxy;
mod routes;
mod server;
mod well_known;

pub use proxy::Proxy;
