//! The OAuth authorization server that a proxy can run.

mod identity;
mod policy;
mod storage;
mod trust;
mod upstream;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::{Duration, list, number::plain_integer, refs::SecretKeyRef};

pub use identity::*;
pub use policy::*;
pub use storage::*;
pub use trust::*;
pub use upstream::*;

/// An address that can be extended by a path: http or https, and nothing after the path.
const BASE_URL: &str = r"^https?://[^\s?#]+[^/\s?#]$";

/// The name of an upstream provider, a DNS label.
pub(crate) const PROVIDER_NAME: &str = "^[a-z0-9]([a-z0-9-]*[a-z0-9])?$";

/// An OAuth authorization server within the proxy. It sends users to an identity provider to log in, issues its own
/// tokens to MCP clients, and stores the provider's tokens for requests to the backend.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {
        "rule": "!(has(self.allowConfidentialClientRegistration) && self.allowConfidentialClientRegistration && has(self.insecureAllowHTTP) && self.insecureAllowHTTP)",
        "message": "allowConfidentialClientRegistration and insecureAllowHTTP cannot both be true: client secrets must not be sent unencrypted",
    },
    {
        "rule": "!has(self.delegateClients) || size(self.delegateClients) == 0 || !self.issuer.startsWith('http://')",
        "message": "delegateClients need an issuer with https, because they send their secrets to it",
    },
    {
        "rule": "(!has(self.forceConfidentialRedirectUris) || size(self.forceConfidentialRedirectUris) == 0) || (has(self.allowConfidentialClientRegistration) && self.allowConfidentialClientRegistration)",
        "message": "forceConfidentialRedirectUris needs allowConfidentialClientRegistration to be true",
    },
]))]
pub struct EmbeddedAuthServer {
    /// The URL by which clients know this server. It is the issuer in every token and the base of the server's
    /// endpoints. Use https, without a trailing slash; http is for localhost and insecureAllowHTTP.
    #[schemars(regex(pattern = BASE_URL))]
    pub issuer: String,
    /// The base URL of the login page alone, when browsers reach the server under a different URL than clients. The
    /// default is issuer.
    #[schemars(regex(pattern = BASE_URL))]
    pub authorization_endpoint_base_url: Option<String>,
    /// Private keys in PEM that sign access tokens: RSA of 2048 bits or more, or an elliptic curve (P-256, P-384,
    /// P-521). The first one signs. The others only verify what they signed earlier, so rotate by putting the new key
    /// first. Without any, each pod generates its own key, and its tokens become invalid when the pod ends.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 5), transform = list::atomic)]
    pub signing_key_secret_refs: Vec<SecretKeyRef>,
    /// Secrets of at least 32 bytes that sign authorization codes and refresh tokens (HMAC). The first one signs, the
    /// others only verify what they signed earlier. Every byte counts, including a trailing newline. Without any,
    /// each pod generates its own, and its refresh tokens become invalid when the pod ends.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = list::atomic)]
    pub hmac_secret_refs: Vec<SecretKeyRef>,
    /// The lifetimes of tokens and codes.
    pub token_lifespans: Option<TokenLifespans>,
    /// The identity providers where users log in, in this order. The first one determines the user's identity. A
    /// VirtualMCPServer can have several; an MCPServer or MCPRemoteProxy needs exactly one.
    #[schemars(length(min = 1), transform = list::by_name)]
    pub upstream_providers: Vec<UpstreamProvider>,
    /// The upstream provider whose token the authorization policies evaluate, by its name. Only a VirtualMCPServer
    /// reads it. The default is the first provider.
    #[schemars(length(min = 1, max = 63), regex(pattern = PROVIDER_NAME))]
    pub primary_upstream_provider: Option<String>,
    /// Where clients, sessions and tokens are stored. The default is the pod's memory, which suits one replica.
    pub storage: Option<AuthServerStorage>,
    /// Whether requests are forwarded without a token of the upstream provider. Set it when the backend needs no
    /// token; it cannot be combined with a token exchange or AWS STS.
    #[schemars(extend("default" = false))]
    pub disable_upstream_token_injection: Option<bool>,
    /// Whether issuer may use http for a host other than localhost. Tokens are then sent unencrypted: for tests only.
    #[serde(rename = "insecureAllowHTTP")]
    #[schemars(extend("default" = false))]
    pub insecure_allow_http: Option<bool>,
    /// Scopes granted to every client that registers itself, in addition to those it requests. Each must be among the
    /// scopes that the server supports.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 10),
        inner(length(min = 1), regex(pattern = r"^[\x21\x23-\x5B\x5D-\x7E]+$")),
        transform = list::atomic
    )]
    pub baseline_client_scopes: Vec<String>,
    /// Whether clients that register themselves may request a secret. Without it, all of them are public clients that
    /// use PKCE alone.
    #[schemars(extend("default" = false))]
    pub allow_confidential_client_registration: Option<bool>,
    /// Redirect URIs whose clients always get a secret, even if they do not request one, for products that require
    /// it. Needs allowConfidentialClientRegistration.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 10),
        inner(regex(pattern = r"^https://[^\s?#]+$")),
        transform = list::atomic
    )]
    pub force_confidential_redirect_uris: Vec<String>,
    /// Whether clients with secrets are accepted although issuer is http on localhost. For development only.
    #[serde(rename = "insecureAllowConfidentialOverLoopbackHTTP")]
    #[schemars(extend("default" = false))]
    pub insecure_allow_confidential_over_loopback_http: Option<bool>,
    /// Preregistered clients that may exchange a user's token for one with which they act on behalf of that user.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10), transform = list::atomic)]
    pub delegate_clients: Vec<DelegateClient>,
    /// Other issuers whose tokens can be exchanged for tokens of this server.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20), transform = list::atomic)]
    pub trusted_issuers: Vec<TrustedIssuer>,
    /// Clients that do not register: their ID is the https URL of a document that describes them (client ID metadata
    /// documents).
    pub cimd: Option<Cimd>,
    /// Clients that users need not approve, by their IDs: those of the organization itself. A client that registers
    /// itself has a random ID.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20), inner(length(min = 1, max = 2048)), transform = list::atomic)]
    pub clients_without_consent: Vec<String>,
    /// How long a session lasts after its login, from 1h to 8760h: then its user logs in again, however often its client has continued it. The
    /// default is without end; a session that is not continued ends with its refresh token (tokenLifespans).
    pub session_lifespan: Option<Duration>,
    /// Which users may log in. The default is all users of the first identity provider.
    pub allowed_users: Option<AllowedUsers>,
    /// Which clients may register themselves. The default is all.
    pub client_registration: Option<ClientRegistration>,
}

/// The lifetimes of what the server issues.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TokenLifespans {
    /// How long an access token is valid, from 1m to 24h. The default is 1h.
    pub access_token_lifespan: Option<Duration>,
    /// How long a refresh token is valid, from 1h to 720h: after that time an idle user logs in again. The default is
    /// 168h.
    pub refresh_token_lifespan: Option<Duration>,
    /// How long an authorization code is valid, from 30s to 10m. The default is 10m.
    pub auth_code_lifespan: Option<Duration>,
}

/// Client ID metadata documents.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Cimd {
    /// Whether such clients are accepted. The server then fetches documents from URLs that clients supply.
    #[schemars(required, extend("default" = false))]
    pub enabled: Option<bool>,
    /// How many documents are cached. The default is 256.
    #[schemars(range(min = 1), transform = plain_integer)]
    pub cache_max_size: Option<i64>,
    /// How long a document is cached before it is fetched again. The default is 5m.
    pub cache_fallback_ttl: Option<Duration>,
}
