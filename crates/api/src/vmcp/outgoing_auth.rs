//! How the process authenticates to its backends.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::{list, number};

/// How the server authenticates to its backends.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OutgoingAuth {
    /// Where the ways to authenticate come from: discovered, from the backends' own objects and then from here; or
    /// inline, from here alone.
    pub source: String,
    /// The way for backends that have no way of their own.
    pub default: Option<BackendAuthStrategy>,
    /// The ways for single backends, by the backend's name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub backends: BTreeMap<String, BackendAuthStrategy>,
}

/// One way to authenticate to a backend. The block that the type names must be set, and it alone counts.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BackendAuthStrategy {
    /// The way to authenticate: unauthenticated, header_injection, token_exchange, upstream_inject, aws_sts, obo or
    /// xaa.
    #[serde(rename = "type")]
    pub type_: String,
    /// A header with a fixed value. Set it with type header_injection.
    pub header_injection: Option<HeaderInjection>,
    /// The caller's token, exchanged for one that the backend accepts (RFC 8693). Set it with type token_exchange.
    pub token_exchange: Option<TokenExchange>,
    /// The token that the caller got from an upstream identity provider. Set it with type upstream_inject.
    pub upstream_inject: Option<UpstreamInject>,
    /// A signature with temporary AWS credentials. Set it with type aws_sts.
    pub aws_sts: Option<AwsSts>,
    /// A token on behalf of the caller, from Microsoft Entra. Set it with type obo.
    pub obo: Option<Obo>,
    /// A token for another organization's server, vouched for by the identity provider that both trust. Set it with
    /// type xaa.
    pub xaa: Option<Xaa>,
}

/// A header with a fixed value, on every request to the backend.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HeaderInjection {
    /// The name of the header, for example X-API-Key.
    pub header_name: String,
    /// Its value, for everyone to read who can read this. Set either it or headerValueEnv.
    pub header_value: Option<String>,
    /// The environment variable that holds the value. Set either it or headerValue.
    pub header_value_env: Option<String>,
}

/// How the caller's token is exchanged for another (RFC 8693).
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TokenExchange {
    /// The token endpoint that exchanges tokens.
    pub token_url: String,
    /// The client id for the token endpoint. Leave it out when the endpoint asks for none.
    pub client_id: Option<String>,
    /// The secret of clientId, for everyone to read who can read this. Prefer clientSecretEnv.
    pub client_secret: Option<String>,
    /// The environment variable that holds the secret of clientId.
    pub client_secret_env: Option<String>,
    /// The audience to ask for: who the new token is meant for.
    pub audience: Option<String>,
    /// The scopes to ask for.
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
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AwsSts {
    /// The AWS region of the backend, for example eu-central-1.
    pub region: String,
    /// The AWS service that requests are signed for. The default is aws-mcp.
    pub service: Option<String>,
    /// The role to assume when no mapping fits. Without it, such callers are refused.
    pub fallback_role_arn: Option<String>,
    /// Which callers assume which role.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = list::atomic)]
    pub role_mappings: Vec<RoleMapping>,
    /// The token claim that mappings look for their claim in. The default is groups.
    pub role_claim: Option<String>,
    /// How long the credentials last, in seconds. The default is 3600.
    pub session_duration: Option<i32>,
    /// The token claim that names the AWS session. The default is sub.
    pub session_name_claim: Option<String>,
    /// The upstream identity provider whose token is presented to AWS. The default is the first one of the embedded
    /// authorization server, or the caller's own token when there is none.
    pub subject_provider_name: Option<String>,
}

/// A role for those callers whose token fits.
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
    /// Which mapping goes first when several fit: the one with the lowest number. Those without one go last.
    #[schemars(transform = number::plain_integer)]
    pub priority: Option<i64>,
}

/// How a token on behalf of the caller is got from Microsoft Entra.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Obo {
    /// The token endpoint of the tenant.
    pub token_url: String,
    /// The client id of this server.
    pub client_id: Option<String>,
    /// The secret of clientId, for everyone to read who can read this. Set either it or clientSecretEnv.
    pub client_secret: Option<String>,
    /// The environment variable that holds the secret of clientId. Set either it or clientSecret.
    pub client_secret_env: Option<String>,
    /// The application that the new token is meant for.
    pub audience: Option<String>,
    /// The scopes to ask for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = list::atomic)]
    pub scopes: Vec<String>,
    /// The upstream identity provider whose token is presented. The default is the caller's own token.
    pub subject_token_provider_name: Option<String>,
    /// How many seconds before it ends a cached token is no longer used.
    pub cache_skew_seconds: Option<i32>,
}

/// How the caller's identity provider vouches for them at another organization's authorization server: an ID token
/// is exchanged for an assertion (ID-JAG), and the assertion for an access token.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Xaa {
    /// The token endpoint of the identity provider.
    pub idp_token_url: String,
    /// The client id of this server at the identity provider.
    pub idp_client_id: Option<String>,
    /// The secret of idpClientId, for everyone to read who can read this. Prefer idpClientSecretEnv.
    pub idp_client_secret: Option<String>,
    /// The environment variable that holds the secret of idpClientId.
    pub idp_client_secret_env: Option<String>,
    /// The token endpoint of the backend's authorization server.
    pub target_token_url: String,
    /// Whether targetTokenUrl may be plain HTTP. For tests only.
    pub insecure_target_token_url: Option<bool>,
    /// The client id of this server at the backend's authorization server.
    pub target_client_id: Option<String>,
    /// The secret of targetClientId, for everyone to read who can read this. Prefer targetClientSecretEnv.
    pub target_client_secret: Option<String>,
    /// The environment variable that holds the secret of targetClientId.
    pub target_client_secret_env: Option<String>,
    /// The issuer of the backend's authorization server: who the assertion is meant for.
    pub target_audience: String,
    /// The address of the backend that the token is for (RFC 8707).
    pub target_resource: Option<String>,
    /// The scopes to ask for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = list::atomic)]
    pub scopes: Vec<String>,
    /// The upstream identity provider whose ID token is exchanged. Needed when the embedded authorization server has
    /// several.
    pub subject_provider_name: Option<String>,
    /// The type of the token that is exchanged, as its URN. Only an ID token can be.
    pub subject_token_type: Option<String>,
}
