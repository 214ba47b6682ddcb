//! The proxy in front of an MCP server. It forwards messages unchanged, byte for byte, and enforces policies.
//!
//! Its endpoint is that of `skep-gateway`, like everything else that is not about one server: a request is read once, as
//! bytes, and passes through the chain of middlewares. The same bytes go to the server: over HTTP (`upstream`), or over
//! its standard input and output (`stdio`). The response streams back unchanged; it is parsed only where a middleware
//! filters lists.
//!
//! The server itself runs in the cluster or beside the proxy, which is up to [`runtime`].
//!
//! A proxy is configured by its RunConfig alone, see [`Proxy::new`]. Every limit has a number ([`limits`]), and
//! no token, secret or body reaches a log.

mod explain;
mod health;
mod inspect;
pub mod limits;
mod load;
mod middlewares;
mod proxy;
mod public_url;
pub mod runtime;
mod server;
mod stdio;
mod upstream;

pub use explain::{explain_request, listed_tools};
pub use inspect::InspectError;
pub use load::{EnvFileError, LoadError, Overrides, SecretError, load, search};
pub use proxy::{Configured, Proxy};
pub use skep_gateway::{
    Administration, AdministrationError, AdministrationPage, AdministrationRequest, AuthorizationServer,
    ConfigError, Connection, ConnectionSource, Connections, OauthObserver, ProviderTokenError,
    RequestContext, Which, Workers,
    endpoint::Extras,
    http::serve,
    middleware::{CallLog, Caller, CallsPage, Explanation, OauthEvent, Outcome},
    request_context,
};
pub use stdio::{REQUEST_TIMEOUT, request_time};
