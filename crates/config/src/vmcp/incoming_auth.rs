//! How clients are authenticated, and what they may do.

use serde::{Deserialize, Serialize};
use serde_with::apply;

use crate::zero::zero;

/// How clients are authenticated.
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct IncomingAuth {
    /// How: [`IncomingAuth::OIDC`], [`IncomingAuth::ANONYMOUS`], or `local` for the user who runs the process.
    #[serde_with(skip_apply)]
    #[serde(rename = "type")]
    pub type_: String,
    /// Whose tokens are accepted.
    pub oidc: Option<Oidc>,
    /// Policies that decide which requests are let through.
    pub authz: Option<Authz>,
}

impl IncomingAuth {
    /// By their tokens.
    pub const OIDC: &str = "oidc";
    /// Not at all.
    pub const ANONYMOUS: &str = "anonymous";
}

/// Whose tokens are accepted, and how they are checked.
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Oidc {
    /// The issuer that tokens must come from.
    #[serde_with(skip_apply)]
    pub issuer: String,
    /// The client that opaque tokens are introspected as.
    #[serde_with(skip_apply)]
    pub client_id: String,
    /// The variable with the secret of that client.
    pub client_secret_env: String,
    /// Whom a token must be for.
    #[serde_with(skip_apply)]
    pub audience: String,
    /// The address that clients know the server by.
    pub resource: String,
    /// Where the issuer's keys are.
    pub jwks_url: String,
    /// Where opaque tokens are introspected.
    pub introspection_url: String,
    /// The scopes that clients are told of.
    pub scopes: Vec<String>,
    /// Whether what the issuer names may have a private address.
    pub protected_resource_allow_private_ip: bool,
    /// Whether the issuer's keys may be at a private address.
    pub jwks_allow_private_ip: bool,
    /// Whether the issuer may use plain HTTP.
    pub insecure_allow_http: bool,
    /// A file with the certificate authority of the issuer.
    pub ca_bundle_path: String,
}

/// Policies that decide which requests are let through.
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Authz {
    /// The language of the policies: [`Authz::CEDAR`], or `none`.
    #[serde_with(skip_apply)]
    #[serde(rename = "type")]
    pub type_: String,
    /// The policies, one in each text.
    pub policies: Vec<String>,
    /// Entities that the policies refer to, as JSON.
    pub entities_json: String,
    /// The upstream provider whose token is looked at instead of the caller's own.
    pub primary_upstream_provider: String,
    /// The claim that holds the caller's groups.
    pub group_claim_name: String,
    /// The claim that holds the caller's roles.
    pub role_claim_name: String,
    /// The type of entity that groups and roles are. The default is `THVGroup`.
    pub group_entity_type: String,
}

impl Authz {
    /// Policies in Cedar.
    pub const CEDAR: &str = "cedar";
}
