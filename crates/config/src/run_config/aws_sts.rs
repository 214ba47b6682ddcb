//! AWS request signing.

use serde::{Deserialize, Serialize};
use serde_with::apply;

use crate::zero::zero;

/// How a caller's token is exchanged for AWS credentials, which sign requests.
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct AwsSts {
    /// The region.
    #[serde_with(skip_apply)]
    pub region: String,
    /// The service that requests are signed for. The default is `aws-mcp`.
    pub service: String,
    /// The role of callers that no mapping matches.
    pub fallback_role_arn: String,
    /// The roles of other callers.
    pub role_mappings: Vec<RoleMapping>,
    /// The claim that mappings match. The default is `groups`.
    pub role_claim: String,
    /// How long credentials are valid, in seconds. The default is an hour.
    pub session_duration: u32,
    /// The claim that names the session. The default is `sub`.
    pub session_name_claim: String,
    /// The upstream provider whose token is used instead of the caller's own.
    pub subject_provider_name: String,
}

/// A role for the callers that match.
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct RoleMapping {
    /// A value that the claim must contain.
    pub claim: String,
    /// A CEL expression over `claims` that must be true.
    pub matcher: String,
    /// The role.
    #[serde_with(skip_apply)]
    pub role_arn: String,
    /// The lowest number wins, and a mapping without one comes last.
    pub priority: Option<i32>,
}
