//! What every MCP endpoint of skep shares, the proxy in front of one server as well as a virtual server of many.
//!
//! A request comes in through [`http::serve`], which accepts connections, limits them and logs each request. An
//! [`Endpoint`](endpoint::Endpoint) reads it once, as bytes, into an [`Exchange`](message::Exchange), and passes it through
//! the [`Chain`](middleware::Chain) of middlewares, each of which lets it pass, changes it or responds to it. Then the
//! [`Upstream`](endpoint::Upstream) of the program responds: [`outbound`] has its connections to servers, and [`sessions`]
//! the sessions of clients there.
//!
//! Folders build on each other in this order: `body`, `outbound`, `http`, `message`, `middleware`, `endpoint`. `aws`,
//! `identity`, `session_redis` and `sessions` are next to them.

mod administration;
mod authorization_server;
pub mod aws;
pub mod body;
mod context;
pub mod endpoint;
mod faults;
pub mod headers;
pub mod http;
pub mod identity;
mod joined_writes;
pub mod limits;
pub mod message;
pub mod middleware;
pub mod outbound;
mod pod;
mod session_redis;
pub mod sessions;
mod truncate;
mod turns;
mod workers;

pub use administration::{
    Administration, AdministrationError, AdministrationPage, Request as AdministrationRequest, Which,
};
pub use authorization_server::{
    AuthorizationServer, Connection, ConnectionSource, Connections, OauthObserver, ProviderTokenError,
    connect_page,
};
pub use context::{RequestContext, request_context};
pub use turns::{Turn, Turns};
pub use workers::Workers;

/// Why a configuration cannot be used: a sentence that names the field.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ConfigError(String);

impl ConfigError {
    /// An error with this sentence.
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}
