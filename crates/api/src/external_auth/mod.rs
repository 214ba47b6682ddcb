//! The methods by which a proxy authenticates to its backend.

mod aws_sts;
mod exchange;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::refs::SecretKeyRef;

pub use aws_sts::*;
pub use exchange::*;

/// A header with a fixed value on every request, for example an API key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HeaderInjection {
    /// The name of the header, for example X-API-Key.
    #[schemars(length(min = 1))]
    pub header_name: String,
    /// The Secret key that holds the value.
    pub value_secret_ref: SecretKeyRef,
}

/// One bearer token for all callers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BearerToken {
    /// The Secret key that holds the token. It is sent unchanged, after "Bearer".
    pub token_secret_ref: SecretKeyRef,
}

/// The token of the caller from an upstream provider of the embedded authorization server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpstreamInject {
    /// The upstream provider whose token is sent, by its name in the authorization server's upstreamProviders.
    #[schemars(length(min = 1))]
    pub provider_name: String,
}

/// The prefix of the types of tokens.
const TOKEN_TYPE: &str = "urn:ietf:params:oauth:token-type:";

/// The full name of a type of token.
pub fn token_type(name: &str) -> String {
    format!("{TOKEN_TYPE}{}", name.strip_prefix(TOKEN_TYPE).unwrap_or(name))
}
