//! Where requests come in: the proxy as a service of HTTP, its routes, and its server.

mod middlewares;
mod proxy;
mod routes;
mod server;
mod well_known;

pub use proxy::Proxy;
