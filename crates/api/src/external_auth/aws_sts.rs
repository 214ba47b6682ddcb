//! Temporary credentials of AWS.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::list;

const ROLE_ARN: &str = r"^arn:(aws|aws-cn|aws-us-gov):iam::\d{12}:role/[\w+=,.@\-_/]+$";

/// Temporary AWS credentials: the caller's token is exchanged at AWS STS for a role, and requests are signed with
/// that role (SigV4).
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AwsSts {
    /// The AWS region to get credentials in and to sign for, for example eu-central-1.
    #[schemars(length(min = 1), regex(pattern = r"^[a-z]{2}(-[a-z]+)+-\d+$"))]
    pub region: String,
    /// The name of the AWS service that requests are signed for.
    #[schemars(extend("default" = AwsSts::DEFAULT_SERVICE))]
    pub service: Option<String>,
    /// The role for callers that no mapping matches. Without it, their requests are rejected.
    #[schemars(regex(pattern = ROLE_ARN))]
    pub fallback_role_arn: Option<String>,
    /// Which callers get which role. Set this, fallbackRoleArn or both.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = list::atomic)]
    pub role_mappings: Vec<RoleMapping>,
    /// The token claim whose values the mappings' claim is compared with.
    #[schemars(extend("default" = AwsSts::DEFAULT_ROLE_CLAIM))]
    pub role_claim: Option<String>,
    /// How long credentials are valid, in seconds: from 15 minutes to 12 hours, and no longer than the role allows.
    #[schemars(range(min = 900, max = 43200), extend("default" = AwsSts::DEFAULT_SESSION_DURATION))]
    pub session_duration: Option<i32>,
    /// The token claim that becomes the session name, which AWS CloudTrail records as the user.
    #[schemars(extend("default" = AwsSts::DEFAULT_SESSION_NAME_CLAIM))]
    pub session_name_claim: Option<String>,
    /// The upstream provider whose token is exchanged, by its name. Only a VirtualMCPServer with an authorization
    /// server reads it; the default there is the first provider.
    pub subject_provider_name: Option<String>,
}

impl AwsSts {
    const DEFAULT_SERVICE: &str = "aws-mcp";
    const DEFAULT_ROLE_CLAIM: &str = "groups";
    const DEFAULT_SESSION_DURATION: i32 = 3600;
    const DEFAULT_SESSION_NAME_CLAIM: &str = "sub";

    /// The name of the AWS service.
    pub fn service(&self) -> &str {
        self.service.as_deref().unwrap_or(Self::DEFAULT_SERVICE)
    }

    /// The token claim that mappings are compared with.
    pub fn role_claim(&self) -> &str {
        self.role_claim.as_deref().unwrap_or(Self::DEFAULT_ROLE_CLAIM)
    }

    /// How long credentials are valid, in seconds.
    pub fn session_duration(&self) -> i32 {
        self.session_duration.unwrap_or(Self::DEFAULT_SESSION_DURATION)
    }

    /// The token claim that becomes the session name.
    pub fn session_name_claim(&self) -> &str {
        self.session_name_claim.as_deref().unwrap_or(Self::DEFAULT_SESSION_NAME_CLAIM)
    }
}

/// A role for the callers that match. Set either claim or matcher.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RoleMapping {
    /// A value that the claim roleClaim of the caller's token must contain, for example the name of a group.
    #[schemars(length(min = 1))]
    pub claim: Option<String>,
    /// A CEL expression over claims. It matches callers for which it is true; an expression that fails does not
    /// match.
    #[schemars(length(min = 1))]
    pub matcher: Option<String>,
    /// The role to assume.
    #[schemars(regex(pattern = ROLE_ARN))]
    pub role_arn: String,
    /// When several mappings match, the one with the lowest number wins; mappings without a number come last. Among
    /// equals, the first in the list wins.
    #[schemars(range(min = 0))]
    pub priority: Option<i32>,
}
