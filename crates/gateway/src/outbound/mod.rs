//! Connections to others: to MCP servers, and to services that others run, such as webhooks and policy decision points.

mod client;
mod connections;
mod headers;
mod pool;
mod service;
mod target;
mod tls;
mod upstream_body;

pub use client::Client;
pub use connections::Error;
pub use headers::outgoing;
pub(crate) use pool::{Pool, pool};
pub use service::{Busy, Service, ServiceError, ServicePlace, address};
pub use target::Target;
pub use tls::Trust;
pub(crate) use tls::{trusted, verified, verified_by_system};
pub use upstream_body::UpstreamBody;
