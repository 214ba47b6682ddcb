//! Other tokens in place of callers' own.

use serde::{Deserialize, Serialize};
use serde_with::apply;

use super::HeaderStrategy;
use crate::zero::zero;

/// How callers' tokens are exchanged for others (RFC 8693).
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct TokenExchange {
    /// Where tokens are exchanged.
    #[serde_with(skip_apply)]
    pub token_url: String,
    /// The client that exchanges them.
    pub client_id: String,
    /// The secret of the client. It is empty in files: see
    /// [`TOKEN_EXCHANGE_CLIENT_SECRET`](crate::env::TOKEN_EXCHANGE_CLIENT_SECRET).
    #[serde_with(skip_apply)]
    pub client_secret: String,
    /// Whom the new token is for.
    pub audience: String,
    /// The scopes of the new token.
    pub scopes: Vec<String>,
    /// What the caller's token is, as a URN or by its last word.
    pub subject_token_type: String,
    /// Where the new token goes. The default is to replace the caller's.
    pub header_strategy: Option<HeaderStrategy>,
    /// The header for the new token, with the strategy `custom`.
    pub external_token_header_name: String,
}

/// How callers' tokens are replaced by those that an upstream provider gave to the same user.
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct UpstreamSwap {
    /// Where the provider's token goes. The default is to replace the caller's.
    pub header_strategy: Option<HeaderStrategy>,
    /// The header for the provider's token, with the strategy `custom`.
    pub custom_header_name: String,
    /// The provider.
    #[serde_with(skip_apply)]
    pub provider_name: String,
}
