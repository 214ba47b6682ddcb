//! The authentication methods that exchange the caller's token for another one.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::{Duration, auth_server::PROVIDER_NAME, duration, list, refs::SecretKeyRef};

const ID_TOKEN: &str = "urn:ietf:params:oauth:token-type:id_token";

/// An OAuth token exchange (RFC 8693): a token service exchanges the caller's token for another one, on each request.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TokenExchange {
    /// The token endpoint where tokens are exchanged.
    pub token_url: String,
    /// The client ID that the proxy presents. It is sent only together with a secret.
    pub client_id: Option<String>,
    /// The Secret key that holds the client secret.
    pub client_secret_ref: Option<SecretKeyRef>,
    /// The audience to request: the intended recipient of the new token.
    pub audience: String,
    /// The scopes to request. Without any, the token service decides.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = list::atomic)]
    pub scopes: Vec<String>,
    /// The type of the caller's token: access_token, id_token or jwt, or the full URN of one of these. The default is
    /// access_token.
    #[schemars(regex(
        pattern = "^(access_token|id_token|jwt|urn:ietf:params:oauth:token-type:(access_token|id_token|jwt))?$"
    ))]
    pub subject_token_type: Option<String>,
    /// A header that carries the new token while Authorization is forwarded unchanged. Without it, the new token
    /// replaces the one in Authorization. A VirtualMCPServer does not read it.
    pub external_token_header_name: Option<String>,
    /// The upstream provider whose token is exchanged, by its name. Only a VirtualMCPServer with an authorization
    /// server reads it; the default there is the first provider.
    pub subject_provider_name: Option<String>,
}

/// The on-behalf-of flow of Microsoft Entra ID: a token for another API, on behalf of the caller.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OnBehalfOf {
    /// The tenant, by its ID or one of its domains.
    #[schemars(
        length(max = 253),
        regex(
            pattern = r"^([0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}|([a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?\.)+[a-zA-Z]{2,})$"
        )
    )]
    pub tenant_id: Option<String>,
    /// The base URL of the login service. Set it for a national cloud; the default is the worldwide one.
    #[schemars(regex(pattern = r"^https://[^\s?#@]+[^/\s?#@]$"))]
    pub authority: Option<String>,
    /// The application (client) ID that the proxy presents.
    pub client_id: Option<String>,
    /// The Secret key that holds the client secret.
    pub client_secret_ref: Option<SecretKeyRef>,
    /// The audience of the token: the application ID URI of the API.
    pub audience: Option<String>,
    /// The scopes to request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 20),
        inner(length(min = 1, max = 256)),
        transform = list::atomic
    )]
    pub scopes: Vec<String>,
    /// The upstream provider whose token is exchanged, by its name. The default is the caller's own token.
    #[schemars(length(min = 1, max = 63), regex(pattern = PROVIDER_NAME))]
    pub subject_token_provider_name: Option<String>,
    /// How long before it expires a token is no longer used, for example 30s.
    #[schemars(transform = duration::unchecked)]
    pub cache_skew: Option<Duration>,
}

/// Cross-app access in two steps: the identity provider turns the caller's ID token into an assertion for another
/// application (an ID-JAG), and that application's authorization server turns the assertion into an access token.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CrossAppAccess {
    /// The token endpoint of the identity provider, for the first step.
    #[schemars(regex(pattern = "^https://.*$"))]
    pub idp_token_url: String,
    /// The client ID that is presented to the identity provider.
    pub idp_client_id: Option<String>,
    /// The Secret key that holds the client secret for the identity provider.
    pub idp_client_secret_ref: Option<SecretKeyRef>,
    /// The token endpoint of the other application's authorization server, for the second step. It is https, or
    /// http on localhost.
    pub target_token_url: String,
    /// Whether targetTokenUrl may use http for any host. Tokens are then sent unencrypted: for tests only.
    pub insecure_target_token_url: Option<bool>,
    /// The client ID that is presented to the other application's authorization server.
    pub target_client_id: Option<String>,
    /// The Secret key that holds the client secret for the other application's authorization server.
    pub target_client_secret_ref: Option<SecretKeyRef>,
    /// The issuer of the other application's authorization server: the audience of the assertion.
    pub target_audience: String,
    /// The URL of the resource that the access token is for, when the authorization server serves several (RFC 8707).
    pub target_resource: Option<String>,
    /// The scopes to request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = list::atomic)]
    pub scopes: Vec<String>,
    /// The upstream provider whose ID token is used, by its name. With one upstream provider it can be left out;
    /// with several, set it.
    pub subject_provider_name: Option<String>,
    /// The type of the caller's token. The flow supports only an ID token, which is the default.
    #[schemars(extend("enum" = [ID_TOKEN]))]
    pub subject_token_type: Option<String>,
}
