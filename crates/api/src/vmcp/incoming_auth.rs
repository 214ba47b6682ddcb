//! How the process authenticates and authorizes its clients.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::{apply, skip_serializing_none};

use crate::unset;

/// How clients are authenticated and what they may do.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IncomingAuth {
    /// How clients are authenticated: oidc, by their tokens; anonymous, not at all; or local, as the user who runs
    /// the process.
    #[serde(rename = "type")]
    pub type_: String,
    /// The issuer whose tokens are accepted. Needed with type oidc.
    pub oidc: Option<Oidc>,
    /// Policies that decide which requests are allowed. Without it, all requests are allowed.
    pub authz: Option<Authz>,
}

impl IncomingAuth {
    /// Clients present tokens.
    pub const OIDC: &str = "oidc";
    /// Clients are not authenticated, and act as the user that runs the process.
    pub const LOCAL: &str = "local";
    /// Clients are not authenticated.
    pub const ANONYMOUS: &str = "anonymous";
}

/// The issuer whose tokens are accepted, and how they are validated.
#[apply(
    Option<String> => #[serde(default, deserialize_with = "unset::non_zero")],
    Option<bool> => #[serde(default, deserialize_with = "unset::non_zero")],
)]
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Oidc {
    /// The issuer that tokens must come from. Its keys and endpoints are discovered there.
    #[schemars(regex(pattern = "^https?://"))]
    pub issuer: String,
    /// The audience that a token must carry.
    pub audience: String,
    /// The client id to introspect opaque tokens with. It may be empty when tokens are JWTs.
    pub client_id: String,
    /// The environment variable that holds the secret of clientId.
    pub client_secret_env: Option<String>,
    /// The public URL of the server, for the protected-resource metadata (RFC 9728). Without it, none is offered.
    pub resource: Option<String>,
    /// The URL of the issuer's keys (JWKS). Set it for an issuer without a discovery document.
    pub jwks_url: Option<String>,
    /// The introspection endpoint for opaque tokens. Set it for an issuer without a discovery document.
    pub introspection_url: Option<String>,
    /// The scopes that are advertised to clients in the protected-resource metadata. The default is openid.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<String>,
    /// A file with the certificates of a private authority that signed the issuer's certificate.
    pub ca_bundle_path: Option<String>,
    /// Whether the issuer may be reached over plain HTTP. For tests only.
    pub insecure_allow_http: Option<bool>,
    /// Whether the issuer's keys may be fetched from a private address, such as one within the cluster.
    pub jwks_allow_private_ip: Option<bool>,
    /// Whether the endpoints that the issuer names may have private addresses.
    pub protected_resource_allow_private_ip: Option<bool>,
}

/// Policies that decide which requests are allowed.
#[apply(Option<String> => #[serde(default, deserialize_with = "unset::non_zero")])]
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Authz {
    /// The language of the policies: cedar, or none to allow every request.
    #[serde(rename = "type")]
    pub type_: String,
    /// Cedar policies. A request is allowed when at least one policy permits it and none forbids it. Needed with type
    /// cedar.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub policies: Vec<String>,
    /// Cedar entities that the policies may refer to, as a JSON array. The default is none.
    pub entities_json: Option<String>,
    /// The upstream identity provider whose token the claims are taken from. The default is the client's own token.
    pub primary_upstream_provider: Option<String>,
    /// The token claim that lists the groups of the caller. The default is the first of groups, roles and
    /// cognito:groups that the token has.
    pub group_claim_name: Option<String>,
    /// A further token claim, whose values count as groups.
    pub role_claim_name: Option<String>,
    /// The Cedar entity type that groups appear as in policies. The default is THVGroup.
    pub group_entity_type: Option<String>,
}

impl Authz {
    /// Policies in Cedar.
    pub const CEDAR: &str = "cedar";
}
