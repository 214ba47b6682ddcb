//! Authorization.

use serde::{Deserialize, Serialize};
use serde_with::apply;

use crate::{Json, zero::zero};

/// The part of `authz_config` that names the authorizer and has its settings.
#[apply(_ => #[serde(default, skip_serializing_if = "zero")])]
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct AuthzDocument {
    /// The version of this format.
    pub version: String,
    /// The authorizer: [`AuthzDocument::CEDAR`] or [`AuthzDocument::PDP`].
    #[serde_with(skip_apply)]
    #[serde(rename = "type")]
    pub type_: String,
    /// Policies in Cedar.
    pub cedar: Option<Cedar>,
    /// A policy decision point, queried over HTTP.
    pub pdp: Option<Json>,
}

impl AuthzDocument {
    /// The version of this format.
    pub const VERSION: &str = "1.0";
    /// The type of a document with policies in Cedar.
    pub const CEDAR: &str = "cedarv1";
    /// The type of a document that names a policy decision point.
    pub const PDP: &str = "httpv1";

    /// A document with policies in Cedar.
    pub fn with_cedar(cedar: Cedar) -> Self {
        Self { version: Self::VERSION.into(), type_: Self::CEDAR.into(), cedar: Some(cedar), pdp: None }
    }
}

/// Policies in Cedar, and how claims become attributes.
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct Cedar {
    /// The policies.
    #[serde_with(skip_apply)]
    pub policies: Vec<String>,
    /// Entities that the policies refer to, as JSON.
    #[serde_with(skip_apply)]
    pub entities_json: String,
    /// The upstream provider whose token is used instead of the caller's own.
    pub primary_upstream_provider: String,
    /// The claim that holds the caller's groups.
    pub group_claim_name: String,
    /// The claim that holds the caller's roles.
    pub role_claim_name: String,
    /// The type of entity that groups and roles are. The default is `THVGroup`.
    pub group_entity_type: String,
    /// Claims that are sets, for a list as for a string in the token.
    pub multi_valued_claims: Vec<String>,
}
