//! The proxy in front of an MCP server: bytes through, policy beside.
//!
//! A request is read once, as bytes. Its envelope is looked at, the layers of the chain decide about it one after
//! another, and the same bytes go on to the server: over HTTP (`upstream`), or over its standard input and output
//! (`stdio`). The answer streams back as it comes; only where a layer must leave something out of a list is it looked into.
//!
//! The server itself runs in the cluster or beside the proxy, which [`runtime`] sees to.
//!
//! What a proxy does is decided by its RunConfig alone, see [`Proxy::new`]. Every limit has a number ([`limits`]), and
//! no token, secret or body reaches a log.

mod about;
mod access;
mod answer;
mod arrival;
mod body;
mod budget;
mod call;
mod chain;
mod coding;
mod cut;
mod endpoint;
mod events;
mod exchange;
mod filter;
mod front;
mod health;
mod identity;
mod layers;
pub mod limits;
mod load;
mod outbound;
mod owner;
mod redis;
pub mod runtime;
mod serve;
mod sessions;
mod stdio;
mod upstream;
mod well_known;
mod workers;

pub use about::{About, about};
pub use front::Proxy;
pub use load::{EnvFileError, LoadError, Overrides, SecretError, load, search};
pub use serve::serve;
pub use stdio::{REQUEST_TIMEOUT, request_time};
pub use workers::Workers;

/// Why a proxy cannot be made of a RunConfig: a sentence that names what is at fault.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ConfigError(String);

impl ConfigError {
    fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}
