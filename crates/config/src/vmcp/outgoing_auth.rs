//! Authentication to backends.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_with::apply;

use crate::zero::zero;

/// How the server authenticates to its backends.
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct OutgoingAuth {
    /// The source of the strategies: [`OutgoingAuth::INLINE`] or [`OutgoingAuth::DISCOVERED`].
    #[serde_with(skip_apply)]
    pub source: String,
    /// The strategy for backends that have none of their own.
    pub default: Option<Strategy>,
    /// The strategies for single backends.
    pub backends: BTreeMap<String, Strategy>,
}

impl OutgoingAuth {
    /// From this file alone.
    pub const INLINE: &str = "inline";
    /// From the backends' own objects, and then from this file.
    pub const DISCOVERED: &str = "discovered";
}

/// One strategy to authenticate. The type determines which of the other fields is used.
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Strategy {
    /// The type.
    #[serde_with(skip_apply)]
    #[serde(rename = "type")]
    pub type_: String,
    /// A header with a fixed value.
    pub header_injection: Option<HeaderInjection>,
    /// The exchange of the caller's token (RFC 8693).
    pub token_exchange: Option<StrategyTokenExchange>,
    /// The caller's token from an upstream provider.
    pub upstream_inject: Option<UpstreamInject>,
    /// A signature with credentials of AWS.
    pub aws_sts: Option<StrategyAwsSts>,
    /// A token on behalf of the caller, from Microsoft Entra.
    pub obo: Option<Obo>,
    /// A token for another application, through the identity provider.
    pub xaa: Option<Xaa>,
}

impl Strategy {
    /// No authentication.
    pub const UNAUTHENTICATED: &str = "unauthenticated";

    /// A strategy of that type.
    pub fn of(type_: &str) -> Self {
        Self { type_: type_.into(), ..Self::default() }
    }
}

/// A header with a fixed value.
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct HeaderInjection {
    /// The header.
    #[serde_with(skip_apply)]
    pub header_name: String,
    /// Its value.
    pub header_value: String,
    /// The variable with its value.
    pub header_value_env: String,
}

/// How the caller's token is exchanged.
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct StrategyTokenExchange {
    /// The token endpoint.
    #[serde_with(skip_apply)]
    pub token_url: String,
    /// The server's client id there.
    pub client_id: String,
    /// The secret of that client.
    pub client_secret: String,
    /// The variable with the secret of that client.
    pub client_secret_env: String,
    /// The audience of the new token.
    pub audience: String,
    /// The scopes to request.
    pub scopes: Vec<String>,
    /// The type of the caller's token, as a URN.
    pub subject_token_type: String,
    /// The upstream provider whose token is exchanged instead of the caller's own.
    pub subject_provider_name: String,
}

/// The caller's token from an upstream provider.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct UpstreamInject {
    /// The provider.
    pub provider_name: String,
}

/// How the caller's token is exchanged for AWS credentials.
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct StrategyAwsSts {
    /// The region.
    #[serde_with(skip_apply)]
    pub region: String,
    /// The service that requests are signed for.
    pub service: String,
    /// The role of callers that no mapping matches.
    pub fallback_role_arn: String,
    /// The roles of other callers.
    pub role_mappings: Vec<StrategyRoleMapping>,
    /// The claim that mappings match.
    pub role_claim: String,
    /// How long credentials are valid, in seconds.
    pub session_duration: Option<i32>,
    /// The claim that names the session.
    pub session_name_claim: String,
    /// The upstream provider whose token is used instead of the caller's own.
    pub subject_provider_name: String,
}

/// A role for the callers that match.
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct StrategyRoleMapping {
    /// A value that the claim must contain.
    pub claim: String,
    /// A CEL expression over the claims that must be true.
    pub matcher: String,
    /// The role.
    #[serde_with(skip_apply)]
    pub role_arn: String,
    /// The lowest number wins, and a mapping without one comes last.
    pub priority: Option<i32>,
}

/// How a token on behalf of the caller is requested from Microsoft Entra.
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Obo {
    /// The token endpoint of the tenant.
    #[serde_with(skip_apply)]
    pub token_url: String,
    /// The server's client id there.
    pub client_id: String,
    /// The secret of that client.
    pub client_secret: String,
    /// The variable with the secret of that client.
    pub client_secret_env: String,
    /// The audience of the new token.
    pub audience: String,
    /// The scopes to request.
    pub scopes: Vec<String>,
    /// The upstream provider whose token is presented instead of the caller's own.
    pub subject_token_provider_name: String,
    /// How many seconds before its expiry a token is no longer used.
    pub cache_skew_seconds: Option<i32>,
}

/// How the identity provider vouches for the caller at another application.
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Xaa {
    /// The token endpoint of the identity provider.
    #[serde_with(skip_apply)]
    pub idp_token_url: String,
    /// The server's client id there.
    pub idp_client_id: String,
    /// The secret of that client.
    pub idp_client_secret: String,
    /// The variable with the secret of that client.
    pub idp_client_secret_env: String,
    /// The token endpoint of the other application.
    #[serde_with(skip_apply)]
    pub target_token_url: String,
    /// Whether that may be plain HTTP.
    pub insecure_target_token_url: bool,
    /// The server's client id there.
    pub target_client_id: String,
    /// The secret of that client.
    pub target_client_secret: String,
    /// The variable with the secret of that client.
    pub target_client_secret_env: String,
    /// The audience of the assertion.
    #[serde_with(skip_apply)]
    pub target_audience: String,
    /// The resource of the token.
    pub target_resource: String,
    /// The scopes to request.
    pub scopes: Vec<String>,
    /// The upstream provider whose ID token is exchanged.
    pub subject_provider_name: String,
    /// The type of that token, as a URN.
    pub subject_token_type: String,
}
