//! The configuration of the authorization server that runs within a proxy or a virtual MCP server.

mod file;
mod identity;
mod policy;
mod storage;
mod trust;
mod upstream;

use serde::{Deserialize, Serialize};
use serde_with::apply;

use crate::{SchemaVersion, yaml, zero::zero};

pub use identity::*;
pub use policy::*;
pub use storage::*;
pub use trust::*;
pub use upstream::*;

/// An OAuth authorization server. Its fields have the order of the file.
#[apply(_ => #[serde(default, skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct AuthServer {
    /// The version of this format.
    #[serde_with(skip_apply)]
    #[serde(default)]
    pub schema_version: SchemaVersion,
    /// The issuer in its tokens, and the base of its endpoints.
    #[serde_with(skip_apply)]
    pub issuer: String,
    /// The base address of the authorization endpoint, if it differs from the issuer.
    pub authorization_endpoint_base_url: String,
    /// The keys that sign tokens. Without them, it generates one for the life of the process.
    pub signing_key_config: Option<SigningKeys>,
    /// Files with the secrets that authenticate codes and refresh tokens. The first one is current.
    pub hmac_secret_files: Vec<String>,
    /// The lifetimes of tokens and codes.
    pub token_lifespans: Option<TokenLifespans>,
    /// The lifetime of a delegate's token, as a Go duration. The default is 15 minutes.
    pub delegation_token_lifespan: String,
    /// The identity providers where users log in, in this order.
    #[serde_with(skip_apply)]
    #[serde(default)]
    pub upstreams: Vec<Upstream>,
    /// The scopes that clients may request. The default is openid, profile, email and offline_access.
    pub scopes_supported: Vec<String>,
    /// Scopes that every dynamically registered client gets.
    pub baseline_client_scopes: Vec<String>,
    /// The audiences that its tokens may have.
    #[serde_with(skip_apply)]
    #[serde(default)]
    pub allowed_audiences: Vec<String>,
    /// The store of clients, sessions and tokens. The default is memory.
    pub storage: Option<AuthServerStorage>,
    /// Whether requests are forwarded without a token of the upstream provider.
    pub disable_upstream_token_injection: bool,
    /// Clients that are identified by a metadata document.
    pub cimd: Option<ClientDocuments>,
    /// Whether the issuer may use plain HTTP.
    pub insecure_allow_http: bool,
    /// Issuers whose tokens can be exchanged for its own.
    pub trusted_issuers: Vec<TrustedIssuer>,
    /// Whether clients with secrets may register themselves.
    pub allow_confidential_client_registration: bool,
    /// Redirect addresses whose clients always get a secret.
    pub force_confidential_redirect_uris: Vec<String>,
    /// Whether clients with secrets may register themselves over plain HTTP on localhost.
    pub insecure_allow_confidential_over_loopback_http: bool,
    /// Clients that may act for users.
    pub delegate_clients: Vec<DelegateClient>,
    /// The ids of clients that users need not approve.
    pub clients_without_consent: Vec<String>,
    /// How long a session lasts after its login, however often it is continued, as a Go duration. The default is without end.
    pub session_lifespan: String,
    /// Which users may log in. The default is all.
    pub allowed_users: Option<AllowedUsers>,
    /// Which clients may register themselves. The default is all.
    pub client_registration: Option<ClientRegistration>,
}

impl AuthServer {
    /// The text of the file for a virtual MCP server.
    pub fn render(&self) -> Result<String, yaml::Error> {
        yaml::render(self)
    }
}

/// The keys that sign tokens.
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct SigningKeys {
    /// The folder of the files.
    pub key_dir: String,
    /// The file of the key that signs.
    pub signing_key_file: String,
    /// The files of former keys, which only verify signatures.
    pub fallback_key_files: Vec<String>,
}

/// The lifetimes of tokens and codes, as Go durations.
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct TokenLifespans {
    /// Access tokens. The default is an hour.
    pub access_token_lifespan: String,
    /// Refresh tokens. The default is a week.
    pub refresh_token_lifespan: String,
    /// Codes. The default is ten minutes.
    pub auth_code_lifespan: String,
}

/// Clients that are identified by a metadata document.
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct ClientDocuments {
    /// Whether such clients are accepted.
    #[serde_with(skip_apply)]
    pub enabled: bool,
    /// How many documents are cached. The default is 256.
    pub cache_max_size: u32,
    /// How long a document is cached, as a Go duration. The default is five minutes.
    pub cache_fallback_ttl: String,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_whole_configuration_survives_reading_and_writing() {
        let written = json!({
            "schema_version": "v0.1.0",
            "issuer": "https://as.example",
            "authorization_endpoint_base_url": "https://login.example",
            "signing_key_config": {"key_dir": "/k", "signing_key_file": "a", "fallback_key_files": ["b"]},
            "hmac_secret_files": ["/h"],
            "token_lifespans": {
                "access_token_lifespan": "1h", "refresh_token_lifespan": "2h", "auth_code_lifespan": "3m",
            },
            "delegation_token_lifespan": "4m",
            "upstreams": [
                {"name": "one", "type": "oidc", "oidc_config": {
                    "issuer_url": "https://one.example", "client_id": "c", "client_secret_file": "/s",
                    "redirect_uri": "https://as.example/oauth/callback", "scopes": ["openid"],
                    "userinfo_override": {
                        "endpoint_url": "https://one.example/me", "http_method": "POST",
                        "additional_headers": {"Accept": "application/json"},
                        "field_mapping": {
                            "subject_fields": ["id"], "name_fields": ["login"], "email_fields": ["mail"],
                        },
                    },
                    "additional_authorization_params": {"prompt": "login"}, "subject_claim": "oid",
                    "allow_private_ips": true, "insecure_allow_http": true,
                }},
                {"name": "two", "type": "oauth2", "oauth2_config": {
                    "authorization_endpoint": "https://two.example/a", "token_endpoint": "https://two.example/t",
                    "redirect_uri": "https://as.example/oauth/callback", "scopes": ["repo"],
                    "userinfo": {"endpoint_url": "https://two.example/me"},
                    "token_response_mapping": {
                        "access_token_path": "a", "scope_path": "b", "refresh_token_path": "c",
                        "expires_in_path": "d",
                    },
                    "identity_from_token": {"subject_path": "s", "name_path": "n", "email_path": "e"},
                    "dcr_config": {
                        "discovery_url": "https://two.example/d", "initial_access_token_env_var": "T",
                        "software_id": "skep", "software_statement": "jwt",
                    },
                }},
            ],
            "scopes_supported": ["openid"],
            "baseline_client_scopes": ["openid"],
            "allowed_audiences": ["https://mcp.example"],
            "storage": {"type": "redis", "redis_config": {
                "sentinel_config": {"master_name": "m", "sentinel_addrs": ["s:26379"], "db": 1},
                "auth_type": "aclUser",
                "acl_user_config": {"username_env_var": "U", "password_env_var": "P"},
                "key_prefix": "thv:auth:{ns:name}:",
                "dial_timeout": "5s", "read_timeout": "3s", "write_timeout": "3s",
                "tls": {"ca_cert_file": "/ca"}, "sentinel_tls": {"insecure_skip_verify": true},
                "encryption_key_file": "/key",
            }},
            "disable_upstream_token_injection": true,
            "cimd": {"enabled": true, "cache_max_size": 9, "cache_fallback_ttl": "1m"},
            "insecure_allow_http": true,
            "trusted_issuers": [{
                "issuer_url": "https://other.example", "expected_audience": "a",
                "jwks_url": "https://other.example/keys", "insecure_allow_http": true,
                "allow_private_ips": true, "actor_claim": "azp", "allowed_actors": ["b"],
                "actor_matcher": "true", "allowed_delegate_clients": ["c"], "allow_may_act": true,
                "jwt_bearer_grant": {
                    "max_assertion_age": "5m",
                    "subject_bindings": [{"subject": "s", "allowed_resources": ["https://mcp.example"]}],
                    "accepted_audiences": ["https://as.example/oauth/token"],
                },
            }],
            "allow_confidential_client_registration": true,
            "force_confidential_redirect_uris": ["https://app.example/cb"],
            "insecure_allow_confidential_over_loopback_http": true,
            "delegate_clients": [{
                "client_id": "d", "client_secret_env_var": "D", "scopes": ["openid"],
                "audiences": ["https://mcp.example"],
            }],
            "clients_without_consent": ["https://client.example/client.json"],
            "session_lifespan": "24h",
            "allowed_users": {
                "email_domains": ["example.com"], "claims": [{"name": "groups", "values": ["staff"]}],
            },
            "client_registration": {
                "disabled": true, "initial_access_token_env_var": "R", "redirect_hosts": ["localhost"],
            },
        });
        let read: AuthServer = serde_json::from_value(written.clone()).unwrap();
        similar_asserts::assert_eq!(serde_json::to_value(read).unwrap(), written);
    }
}
