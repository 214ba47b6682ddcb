//! Who may get tokens without a user who logs in.

use serde::{Deserialize, Serialize};
use serde_with::apply;

use crate::zero::zero;

/// A client that exchanges a user's token for one with which it acts for that user (RFC 8693).
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct DelegateClient {
    /// The client.
    #[serde_with(skip_apply)]
    pub client_id: String,
    /// A file with its secret. It wins over the variable.
    pub client_secret_file: String,
    /// The variable with its secret.
    pub client_secret_env_var: String,
    /// The scopes that it may ask for.
    pub scopes: Vec<String>,
    /// Whom its tokens may be for.
    pub audiences: Vec<String>,
}

/// An issuer whose tokens can be exchanged.
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct TrustedIssuer {
    /// The issuer.
    #[serde_with(skip_apply)]
    pub issuer_url: String,
    /// Whom its tokens must be for.
    pub expected_audience: String,
    /// Where its keys are. Without it, they are discovered.
    pub jwks_url: String,
    /// Whether it may be reached over plain HTTP.
    pub insecure_allow_http: bool,
    /// Whether it may have a private address.
    pub allow_private_ips: bool,
    /// The claim that says who acts. The default is `azp`.
    pub actor_claim: String,
    /// Who may act.
    pub allowed_actors: Vec<String>,
    /// A CEL expression that is true for those who may act.
    pub actor_matcher: String,
    /// The clients that may exchange its tokens. `*` alone means all.
    pub allowed_delegate_clients: Vec<String>,
    /// Whether a token may itself name who may act.
    pub allow_may_act: bool,
    /// How its tokens are turned into tokens without a client (RFC 7523).
    pub jwt_bearer_grant: Option<JwtBearerGrant>,
}

/// How assertions of an issuer are turned into tokens (RFC 7523).
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct JwtBearerGrant {
    /// How old an assertion may be, as a Go duration.
    #[serde_with(skip_apply)]
    pub max_assertion_age: String,
    /// Who may get tokens, and for what.
    #[serde_with(skip_apply)]
    pub subject_bindings: Vec<SubjectBinding>,
    /// Whom an assertion may be for, besides the token endpoint.
    pub accepted_audiences: Vec<String>,
}

/// What one subject may get tokens for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct SubjectBinding {
    /// The subject of the assertion.
    pub subject: String,
    /// The resources that it may get tokens for.
    pub allowed_resources: Vec<String>,
}
