//! Who may get tokens without a user login here: delegates, and subjects of other trusted issuers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::{Duration, duration, list, refs::SecretKeyRef};

const RESOURCE_URL: &str = "^https?://[^[:space:]]+$";

/// A client that exchanges a user's token for one with which it acts on behalf of that user (RFC 8693).
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "has(self.clientSecretRef) && size(self.clientSecretRef.name) > 0 && size(self.clientSecretRef.key) > 0",
    "message": "clientSecretRef must name a Secret and a key within it: a delegate always has a secret",
}]))]
pub struct DelegateClient {
    /// The ID that the client presents.
    #[schemars(length(min = 1, max = 256))]
    pub client_id: String,
    /// The Secret key that holds the client's secret, of at least 32 characters.
    pub client_secret_ref: SecretKeyRef,
    /// The largest set of scopes that the client's tokens may have. They never exceed those of the user's own token.
    #[schemars(
        length(min = 1, max = 10),
        inner(length(min = 1, max = 256)),
        transform = list::atomic
    )]
    pub scopes: Vec<String>,
    /// The audiences that the client may request, out of those that this server issues tokens for.
    #[schemars(
        length(min = 1, max = 10),
        inner(length(min = 1, max = 2048)),
        transform = list::atomic
    )]
    pub audiences: Vec<String>,
}

/// Another issuer whose tokens this server accepts in exchange for its own.
///
/// There are two flows, which can be combined. A delegate presents a user's token and acts on behalf of that user: it
/// needs expectedAudience and allowedDelegateClients. A workload presents a token about itself: it needs
/// jwtBearerGrant.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {
        "rule": "!has(self.allowedDelegateClients) || !('*' in self.allowedDelegateClients) || size(self.allowedDelegateClients) == 1",
        "message": "allowedDelegateClients can be * for all clients or a list of clients, not a mix of both",
    },
    {
        "rule": "!(has(self.allowMayAct) && self.allowMayAct && has(self.allowedDelegateClients) && '*' in self.allowedDelegateClients)",
        "message": "allowMayAct cannot be combined with * in allowedDelegateClients: list the clients",
    },
    {
        "rule": "!has(self.actorClaim) || !(self.actorClaim in ['sub', 'iss', 'aud', 'exp', 'iat', 'nbf', 'jti', 'name', 'email', 'scope', 'scp', 'may_act'])",
        "message": "actorClaim must be a claim that names the client, such as azp; this one has another meaning",
    },
    {
        "rule": "!(has(self.allowPrivateIPs) && self.allowPrivateIPs) || (has(self.jwksUrl) && self.jwksUrl != \"\")",
        "message": "allowPrivateIPs needs jwksUrl, so that only an address that you configured can be private",
    },
    {
        "rule": "(has(self.jwtBearerGrant) && !((has(self.actorClaim) && size(self.actorClaim) > 0) || (has(self.actorMatcher) && size(self.actorMatcher) > 0) || (has(self.allowMayAct) && self.allowMayAct) || (has(self.allowedActors) && size(self.allowedActors) > 0))) || (has(self.expectedAudience) && size(self.expectedAudience) > 0)",
        "message": "expectedAudience must be set, unless jwtBearerGrant is set without actorClaim, allowedActors, actorMatcher and allowMayAct",
    },
    {
        "rule": "!((has(self.expectedAudience) && size(self.expectedAudience) > 0) || (has(self.actorClaim) && size(self.actorClaim) > 0) || (has(self.actorMatcher) && size(self.actorMatcher) > 0) || (has(self.allowMayAct) && self.allowMayAct)) || (has(self.allowedDelegateClients) && size(self.allowedDelegateClients) > 0)",
        "message": "allowedDelegateClients must be set with expectedAudience, actorClaim, actorMatcher or allowMayAct: list the clients that may act for users",
    },
]))]
pub struct TrustedIssuer {
    /// The issuer, exactly as in the iss claim of its tokens. Each can be listed once; this server's own issuer
    /// cannot be listed.
    #[schemars(length(min = 1, max = 2048))]
    pub issuer_url: String,
    /// The audience that a user's token from this issuer must carry to be exchanged.
    #[schemars(length(min = 1, max = 2048))]
    pub expected_audience: Option<String>,
    /// The URL of the issuer's keys (JWKS). The default is the one in its discovery document.
    #[schemars(length(max = 2048))]
    pub jwks_url: Option<String>,
    /// Whether the issuer's keys may be fetched over http. Anyone on the network path can then forge tokens: for
    /// tests only.
    #[serde(rename = "insecureAllowHTTP")]
    pub insecure_allow_http: Option<bool>,
    /// Whether jwksUrl may have a private address. Set it for an issuer within the cluster.
    #[serde(rename = "allowPrivateIPs")]
    pub allow_private_ips: Option<bool>,
    /// The claim that names the client to which the issuer issued the token. The default is azp.
    #[schemars(length(max = 64))]
    pub actor_claim: Option<String>,
    /// The clients of the issuer, by the value of actorClaim, whose tokens may be exchanged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50), inner(length(min = 1, max = 256)), transform = list::atomic)]
    pub allowed_actors: Vec<String>,
    /// A CEL expression over claims that decides whether a token may be exchanged, for rules that a list of actors
    /// cannot express.
    #[schemars(length(max = 4096))]
    pub actor_matcher: Option<String>,
    /// The clients of this server, by their IDs, that may exchange tokens of this issuer. A single * means all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(min = 1, max = 50),
        inner(length(min = 1, max = 256)),
        transform = list::atomic
    )]
    pub allowed_delegate_clients: Vec<String>,
    /// Whether a token may itself name, in its may_act claim, the client that acts for the user.
    #[schemars(extend("default" = false))]
    pub allow_may_act: Option<bool>,
    /// Lets workloads of this issuer get their own tokens for a signed assertion (RFC 7523), without a client secret.
    /// Each assertion can be used once.
    pub jwt_bearer_grant: Option<JwtBearerGrant>,
}

/// Tokens in exchange for a signed assertion.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {
        "rule": "duration(self.maxAssertionAge) > duration('0s')",
        "message": "maxAssertionAge must be more than zero, for example 5m",
    },
    {
        "rule": "self.subjectBindings.all(binding, self.subjectBindings.filter(other, other.subject == binding.subject).size() == 1)",
        "message": "subjectBindings must name each subject once: put all its resources into one allowedResources",
    },
]))]
pub struct JwtBearerGrant {
    /// How old an assertion may be, for example 5m.
    #[schemars(transform = duration::unchecked)]
    pub max_assertion_age: Duration,
    /// Which subjects may get tokens, and for which resources. A subject that is not listed gets none.
    #[schemars(length(min = 1, max = 50), transform = list::atomic)]
    pub subject_bindings: Vec<SubjectBinding>,
    /// Audiences that an assertion may carry. The default is the URL of this server's token endpoint.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 50),
        inner(length(min = 1, max = 2048), regex(pattern = RESOURCE_URL)),
        transform = list::atomic
    )]
    pub accepted_audiences: Vec<String>,
}

/// The resources that one subject may get tokens for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SubjectBinding {
    /// The sub claim of the assertion, in full: there are no wildcards.
    #[schemars(length(min = 1, max = 256), regex(pattern = "^[^*]+$"))]
    pub subject: String,
    /// The URLs of the resources that it may get tokens for.
    #[schemars(
        length(min = 1, max = 50),
        inner(length(min = 1, max = 2048), regex(pattern = RESOURCE_URL)),
        transform = list::atomic
    )]
    pub allowed_resources: Vec<String>,
}
