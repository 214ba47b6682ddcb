//! The proxy in front of an MCP server. It forwards messages unchanged, byte for byte, and enforces policies.
//!
//! A request is read once, as bytes, and passes through the chain of middlewares, which is part of `skep-gateway` like
//! everything else that is not about one server. The same bytes go to the server: over HTTP (`upstream`), or over its
//! standard input and output (`stdio`). The response streams back unchanged; it is parsed only where a middleware filters
//! lists.
//!
//! The server itself runs in the cluster or beside the proxy, which is up to [`runtime`].
//!
//! A proxy is configured by its RunConfig alone, see [`Proxy::new`]. Every limit has a number ([`limits`]), and
//! no token, secret or body reaches a log.

mod endpoint;
mod explain;
mod front;
mod health;
mod inspect;
pub mod limits;
mod load;
pub mod runtime;
mod stdio;
mod upstream;

pub use explain::{explain_request, listed_tools};
pub use front::{Configured, Proxy};
pub use inspect::InspectError;
pub use load::{EnvFileError, LoadError, Overrides, SecretError, load, search};
pub use skep_gateway::{
    Administration, AdministrationError, AdministrationPage, AdministrationRequest, AuthorizationServer,
    ConfigError, Connection, ConnectionSource, Connections, OauthObserver, ProviderTokenError,
    RequestContext, Which, Workers,
    http::serve,
    middleware::{CallLog, Caller, CallsPage, Explanation, OauthEvent, Outcome},
    request_context,
};
pub use stdio::{REQUEST_TIMEOUT, request_time};
