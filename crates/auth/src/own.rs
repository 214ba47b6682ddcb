//! Tokens that this process issued itself.

use futures::future::BoxFuture;
use serde_json::{Map, Value};

use crate::AuthenticationError;

/// Verifies the tokens that an authorization server in this process has issued. It needs no request to fetch its own keys.
pub trait OwnTokens: Send + Sync {
    /// The issuer in the tokens.
    fn issuer(&self) -> &str;

    /// The claims of a token, if the signature is right. Issuer, audience and times are checked by the caller, and then whether
    /// its session goes on.
    fn claims<'a>(&'a self, token: &'a str)
    -> BoxFuture<'a, Result<Map<String, Value>, AuthenticationError>>;
}
