//! Why there is no connection.

use http::StatusCode;

use crate::BoxError;

/// Why there is no connection through a proxy. It names the host and the port of the proxy, and no credentials.
#[derive(Debug, thiserror::Error)]
pub enum EgressError {
    /// It cannot be reached, or the connection broke off.
    #[error("the egress proxy {0} cannot be reached: {1}")]
    Unreachable(Box<str>, BoxError),
    /// It does not respond.
    #[error("the egress proxy {0} did not respond in time")]
    Slow(Box<str>),
    /// It requires other credentials.
    #[error("the egress proxy {0} does not accept the credentials")]
    Unauthorized(Box<str>),
    /// It does not open a tunnel.
    #[error("the egress proxy {0} responded with {1}")]
    Rejected(Box<str>, StatusCode),
    /// It does not speak HTTP.
    #[error("the response of the egress proxy {0} is malformed")]
    Malformed(Box<str>),
    /// The address of the request has no host.
    #[error("it has no address")]
    NoHost,
}
