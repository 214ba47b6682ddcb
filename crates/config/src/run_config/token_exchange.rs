//! Token exchange.

use serde::{Deserialize, Serialize};
use serde_with::apply;

use super::HeaderStrategy;
use crate::zero::zero;

/// How callers' tokens are exchanged (RFC 8693).
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct TokenExchange {
    /// The token endpoint.
    #[serde_with(skip_apply)]
    pub token_url: String,
    /// The client id.
    pub client_id: String,
    /// The secret of the client. It is empty in files: see
    /// [`TOKEN_EXCHANGE_CLIENT_SECRET`](crate::env::TOKEN_EXCHANGE_CLIENT_SECRET).
    #[serde_with(skip_apply)]
    pub client_secret: String,
    /// The audience of the new token.
    pub audience: String,
    /// The scopes of the new token.
    pub scopes: Vec<String>,
    /// The type of the caller's token, as a URN or its last part.
    pub subject_token_type: String,
    /// The header of the new token. The default is to replace the caller's.
    pub header_strategy: Option<HeaderStrategy>,
    /// The header for the new token, with the strategy `custom`.
    pub external_token_header_name: String,
}

/// How callers' tokens are replaced by those of an upstream provider for the same user.
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct UpstreamSwap {
    /// The header of the provider's token. The default is to replace the caller's.
    pub header_strategy: Option<HeaderStrategy>,
    /// The header for the provider's token, with the strategy `custom`.
    pub custom_header_name: String,
    /// The provider.
    #[serde_with(skip_apply)]
    pub provider_name: String,
}
