//! Delegation and trusted issuers: tokens without a user's login.

use serde::{Deserialize, Serialize};
use serde_with::apply;

use crate::zero::zero;

/// A client that exchanges a user's token for one to act for that user (RFC 8693).
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct DelegateClient {
    /// The client.
    #[serde_with(skip_apply)]
    pub client_id: String,
    /// A file with its secret. It overrides the variable.
    pub client_secret_file: String,
    /// The variable with its secret.
    pub client_secret_env_var: String,
    /// The scopes that it may request.
    pub scopes: Vec<String>,
    /// The audiences that its tokens may have.
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
    /// The audience that its tokens must have.
    pub expected_audience: String,
    /// The address of its keys. Without it, they are discovered.
    pub jwks_url: String,
    /// Whether it may be reached over plain HTTP.
    pub insecure_allow_http: bool,
    /// Whether it may have a private address.
    pub allow_private_ips: bool,
    /// The claim that names the actor. The default is `azp`.
    pub actor_claim: String,
    /// The actors that are allowed.
    pub allowed_actors: Vec<String>,
    /// A CEL expression that is true for allowed actors.
    pub actor_matcher: String,
    /// The clients that may exchange its tokens. `*` alone means all.
    pub allowed_delegate_clients: Vec<String>,
    /// Whether a token may itself name its actors (`may_act`).
    pub allow_may_act: bool,
    /// The grant that exchanges its tokens without a client (RFC 7523).
    pub jwt_bearer_grant: Option<JwtBearerGrant>,
}

/// The JWT bearer grant for an issuer's assertions (RFC 7523).
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct JwtBearerGrant {
    /// How old an assertion may be, as a Go duration.
    #[serde_with(skip_apply)]
    pub max_assertion_age: String,
    /// The subjects that may get tokens, and their resources.
    #[serde_with(skip_apply)]
    pub subject_bindings: Vec<SubjectBinding>,
    /// The audiences that an assertion may have, besides the token endpoint.
    pub accepted_audiences: Vec<String>,
}

/// The resources of one subject.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct SubjectBinding {
    /// The subject of the assertion.
    pub subject: String,
    /// The resources that it may get tokens for.
    pub allowed_resources: Vec<String>,
}
