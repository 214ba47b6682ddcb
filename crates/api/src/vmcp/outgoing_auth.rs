//! How the process authenticates to its backends.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::{apply, skip_serializing_none};

use crate::{list, number, unset};

/// How the server authenticates to its backends.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OutgoingAuth {
    /// Where the configuration comes from: discovered, from the backends' own objects and then from here; or inline,
    /// from here alone.
    pub source: String,
    /// The authentication to backends without a configuration of their own.
    pub default: Option<BackendAuthStrategy>,
    /// The authentication to individual backends, by the backend's name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub backends: BTreeMap<String, BackendAuthStrategy>,
}

impl OutgoingAuth {
    /// The authentication to this backend.
    pub fn strategy(&self, backend: &str) -> Option<&BackendAuthStrategy> {
        self.backends.get(backend).or(self.default.as_ref())
    }
}

/// The authentication to a backend. The field for the type must be set; the others have no effect.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BackendAuthStrategy {
    /// The authentication method: unauthenticated, header_injection, token_exchange, upstream_inject, aws_sts, obo or
    /// xaa.
    #[serde(rename = "type")]
    pub type_: String,
    /// A header with a fixed value. Set it with type header_injection.
    pub header_injection: Option<HeaderInjection>,
    /// The caller's token, exchanged for one that the backend accepts (RFC 8693). Set it with type token_exchange.
    pub token_exchange: Option<TokenExchange>,
    /// The caller's token from an upstream identity provider. Set it with type upstream_inject.
    pub upstream_inject: Option<UpstreamInject>,
    /// A signature with temporary AWS credentials. Set it with type aws_sts.
    pub aws_sts: Option<AwsSts>,
    /// A token on behalf of the caller, from Microsoft Entra. Set it with type obo.
    pub obo: Option<Obo>,
    /// A token for another organization's server, through an identity provider that both trust. Set it with type xaa.
    pub xaa: Option<Xaa>,
}

impl BackendAuthStrategy {
    /// No authentication.
    pub const UNAUTHENTICATED: &str = "unauthenticated";

    /// A strategy of that type.
    pub fn of(type_: &str) -> Self {
        Self { type_: type_.into(), ..Self::default() }
    }
}

/// A header with a fixed value, on every request to the backend.
#[apply(Option<String> => #[serde(default, deserialize_with = "unset::non_zero")])]
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HeaderInjection {
    /// The name of the header, for example X-API-Key.
    pub header_name: String,
    /// Its value, stored in plain text. Set either it or headerValueEnv.
    pub header_value: Option<String>,
    /// The environment variable that holds the value. Set either it or headerValue.
    pub header_value_env: Option<String>,
}

/// How the caller's token is exchanged for another (RFC 8693).
#[apply(Option<String> => #[serde(default, deserialize_with = "unset::non_zero")])]
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TokenExchange {
    /// The token endpoint that exchanges tokens.
    pub token_url: String,
    /// The client id for the token endpoint. Leave it out when the endpoint requires none.
    pub client_id: Option<String>,
    /// The secret of clientId, stored in plain text. Prefer clientSecretEnv.
    pub client_secret: Option<String>,
    /// The environment variable that holds the secret of clientId.
    pub client_secret_env: Option<String>,
    /// The audience to request: the intended recipient of the new token.
    pub audience: Option<String>,
    /// The scopes to request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = list::atomic)]
    pub scopes: Vec<String>,
    /// The type of the token that is exchanged, as its URN. The default is an access token.
    pub subject_token_type: Option<String>,
    /// The upstream identity provider whose token is exchanged. The default is the first one of the embedded
    /// authorization server, or the caller's own token when there is none.
    pub subject_provider_name: Option<String>,
}

/// The token of an upstream identity provider, passed on to the backend.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpstreamInject {
    /// The upstream identity provider, by its name in the embedded authorization server.
    pub provider_name: String,
}

/// How the caller's token becomes temporary AWS credentials, with which requests are signed (SigV4).
#[apply(Option<String> => #[serde(default, deserialize_with = "unset::non_zero")])]
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AwsSts {
    /// The AWS region of the backend, for example eu-central-1.
    pub region: String,
    /// The AWS service that requests are signed for. The default is aws-mcp.
    pub service: Option<String>,
    /// The role to assume when no mapping matches. Without it, requests of such callers are rejected.
    pub fallback_role_arn: Option<String>,
    /// Which callers assume which role.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = list::atomic)]
    pub role_mappings: Vec<RoleMapping>,
    /// The token claim whose values the mappings' claim is compared with. The default is groups.
    pub role_claim: Option<String>,
    /// How long the credentials are valid, in seconds. The default is 3600.
    pub session_duration: Option<i32>,
    /// The token claim that becomes the AWS session name. The default is sub.
    pub session_name_claim: Option<String>,
    /// The upstream identity provider whose token is presented to AWS. The default is the first one of the embedded
    /// authorization server, or the caller's own token when there is none.
    pub subject_provider_name: Option<String>,
}

/// A role for callers whose token matches.
#[apply(Option<String> => #[serde(default, deserialize_with = "unset::non_zero")])]
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RoleMapping {
    /// The value that roleClaim must contain, for example the name of a group. Set either it or matcher.
    pub claim: Option<String>,
    /// A CEL expression over the token's claims that must be true. Set either it or claim.
    pub matcher: Option<String>,
    /// The role to assume.
    pub role_arn: String,
    /// The priority when several mappings match: the lowest number wins. Mappings without a number come last.
    #[schemars(transform = number::plain_integer)]
    pub priority: Option<i64>,
}

/// How a token on behalf of the caller is obtained from Microsoft Entra.
#[apply(Option<String> => #[serde(default, deserialize_with = "unset::non_zero")])]
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Obo {
    /// The token endpoint of the tenant.
    pub token_url: String,
    /// The client id of this server.
    pub client_id: Option<String>,
    /// The secret of clientId, stored in plain text. Set either it or clientSecretEnv.
    pub client_secret: Option<String>,
    /// The environment variable that holds the secret of clientId. Set either it or clientSecret.
    pub client_secret_env: Option<String>,
    /// The application that the new token is for.
    pub audience: Option<String>,
    /// The scopes to request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = list::atomic)]
    pub scopes: Vec<String>,
    /// The upstream identity provider whose token is presented. The default is the caller's own token.
    pub subject_token_provider_name: Option<String>,
    /// How many seconds before it expires a cached token is no longer used.
    pub cache_skew_seconds: Option<i32>,
}

/// Cross-app access through the caller's identity provider to another organization's authorization server: an ID
/// token is exchanged for an assertion (ID-JAG), and the assertion for an access token.
#[apply(
    Option<String> => #[serde(default, deserialize_with = "unset::non_zero")],
    Option<bool> => #[serde(default, deserialize_with = "unset::non_zero")],
)]
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Xaa {
    /// The token endpoint of the identity provider.
    pub idp_token_url: String,
    /// The client id of this server at the identity provider.
    pub idp_client_id: Option<String>,
    /// The secret of idpClientId, stored in plain text. Prefer idpClientSecretEnv.
    pub idp_client_secret: Option<String>,
    /// The environment variable that holds the secret of idpClientId.
    pub idp_client_secret_env: Option<String>,
    /// The token endpoint of the backend's authorization server.
    pub target_token_url: String,
    /// Whether targetTokenUrl may be plain HTTP. For tests only.
    pub insecure_target_token_url: Option<bool>,
    /// The client id of this server at the backend's authorization server.
    pub target_client_id: Option<String>,
    /// The secret of targetClientId, stored in plain text. Prefer targetClientSecretEnv.
    pub target_client_secret: Option<String>,
    /// The environment variable that holds the secret of targetClientId.
    pub target_client_secret_env: Option<String>,
    /// The issuer of the backend's authorization server: the audience of the assertion.
    pub target_audience: String,
    /// The URL of the backend that the token is for (RFC 8707).
    pub target_resource: Option<String>,
    /// The scopes to request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = list::atomic)]
    pub scopes: Vec<String>,
    /// The upstream identity provider whose ID token is exchanged. Needed when the embedded authorization server has
    /// several.
    pub subject_provider_name: Option<String>,
    /// The type of the token that is exchanged, as its URN. Only an ID token can be.
    pub subject_token_type: Option<String>,
}
