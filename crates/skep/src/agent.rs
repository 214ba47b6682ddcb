//! The `User-Agent` of requests to the API server: how its audit log and its metrics name the programs. The operator and the proxy have
//! theirs in their own crates.

use http::{HeaderName, HeaderValue, header::USER_AGENT};

macro_rules! agent {
    ($name:literal) => {
        (USER_AGENT, HeaderValue::from_static(concat!($name, "/", env!("CARGO_PKG_VERSION"))))
    };
}

/// A command of a person.
pub(crate) const USER: (HeaderName, HeaderValue) = agent!("skep");
/// The console.
pub(crate) const CONSOLE: (HeaderName, HeaderValue) = agent!("skep-console");
/// A virtual MCP server.
pub(crate) const VMCP: (HeaderName, HeaderValue) = agent!("skep-vmcp");
