//! Authentication and authorization of clients.

use serde::{Deserialize, Serialize};
use serde_with::apply;

use crate::zero::zero;

/// How clients are authenticated.
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct IncomingAuth {
    /// The type: [`IncomingAuth::OIDC`], [`IncomingAuth::ANONYMOUS`], or `local` for the user who runs the process.
    #[serde_with(skip_apply)]
    #[serde(rename = "type")]
    pub type_: String,
    /// The validation of tokens.
    pub oidc: Option<Oidc>,
    /// Authorization policies.
    pub authz: Option<Authz>,
}

impl IncomingAuth {
    /// Clients present tokens.
    pub const OIDC: &str = "oidc";
    /// Clients are not authenticated.
    pub const ANONYMOUS: &str = "anonymous";
}

/// How tokens are validated.
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Oidc {
    /// The issuer that a token must have.
    #[serde_with(skip_apply)]
    pub issuer: String,
    /// The client id for introspection.
    #[serde_with(skip_apply)]
    pub client_id: String,
    /// The variable with the secret of that client.
    pub client_secret_env: String,
    /// The audience that a token must have.
    #[serde_with(skip_apply)]
    pub audience: String,
    /// The address of the server for clients.
    pub resource: String,
    /// The address of the issuer's keys.
    pub jwks_url: String,
    /// The introspection endpoint.
    pub introspection_url: String,
    /// The scopes that clients should request.
    pub scopes: Vec<String>,
    /// Whether endpoints of the issuer may have private addresses.
    pub protected_resource_allow_private_ip: bool,
    /// Whether the issuer's keys may be at a private address.
    pub jwks_allow_private_ip: bool,
    /// Whether the issuer may use plain HTTP.
    pub insecure_allow_http: bool,
    /// A file with the certificate authority of the issuer.
    pub ca_bundle_path: String,
}

/// Authorization policies.
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Authz {
    /// The language of the policies: [`Authz::CEDAR`], or `none`.
    #[serde_with(skip_apply)]
    #[serde(rename = "type")]
    pub type_: String,
    /// The policies.
    pub policies: Vec<String>,
    /// Entities that the policies refer to, as JSON.
    pub entities_json: String,
    /// The upstream provider whose token is used instead of the caller's own.
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
