//! Parameters of middlewares. Most repeat a field of the RunConfig, because a chain is self-contained.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_with::apply;

use crate::{
    Json,
    run_config::{
        Audit, AwsSts, Oidc, RateLimits, Telemetry, TokenExchange, ToolOverride, Transport, UpstreamSwap,
        Webhook,
    },
    zero::{null, zero},
};

/// The limit of request bodies.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct BodyLimit {
    /// The largest body that passes, in bytes: see [`BodyLimit::max_bytes`].
    pub max_bytes: i64,
}

impl BodyLimit {
    const DEFAULT_MAX_BYTES: u32 = 8 * 1024 * 1024;

    /// The largest body that passes, in bytes. The default, also for a value that is not positive, is 8 MiB.
    pub fn max_bytes(&self) -> u64 {
        match u64::try_from(self.max_bytes) {
            Ok(0) | Err(_) => Self::DEFAULT_MAX_BYTES.into(),
            Ok(bytes) => bytes,
        }
    }
}

impl Default for BodyLimit {
    fn default() -> Self {
        Self { max_bytes: Self::DEFAULT_MAX_BYTES.into() }
    }
}

/// The web origins that may send requests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct Origin {
    /// Their origins.
    #[serde(with = "null")]
    pub allowed_origins: Vec<String>,
}

/// The audit log.
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct AuditParameters {
    /// A file with the settings. It has no effect if `config_data` is set.
    pub config_path: String,
    /// The settings.
    pub config_data: Option<Audit>,
    /// The component in entries.
    pub component: String,
    /// The transport of the server.
    pub transport_type: Option<Transport>,
}

/// How callers' tokens are validated.
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct Auth {
    /// The settings. Without them, every caller is accepted as one local user.
    pub oidc_config: Option<Oidc>,
}

/// How callers' tokens are replaced.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct UpstreamSwapParameters {
    /// The settings.
    pub config: UpstreamSwap,
}

/// How callers' tokens are exchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct TokenExchangeParameters {
    /// The settings.
    pub token_exchange_config: TokenExchange,
}

/// The tools that clients see.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct ToolFilter {
    /// The tools to offer, by the names that clients see. Empty means all.
    #[serde(with = "null")]
    pub filter_tools: Vec<String>,
    /// Overrides of tools' names and descriptions, by the names that the server gives them.
    pub tools_override: BTreeMap<String, ToolOverride>,
}

/// Traces and metrics.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct TelemetryParameters {
    /// The settings.
    pub config: Telemetry,
    /// The name of the server.
    pub server_name: String,
    /// The transport of the server.
    pub transport: Transport,
}

/// Rate limits of tool calls.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct RateLimit {
    /// The namespace of the server.
    pub namespace: String,
    /// The name of the server.
    pub server_name: String,
    /// The limits.
    pub config: RateLimits,
    /// The address of the Redis that counts calls, as `host:port` or as a URL.
    pub redis_addr: String,
    /// The number of its database.
    pub redis_db: i32,
}

impl RateLimit {
    /// In place of the address of a Redis, for a proxy that shares its buckets with no other.
    pub const IN_MEMORY: &str = "memory://";
}

/// Webhooks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct Webhooks {
    /// The webhooks, in the order in which they are called.
    #[serde(with = "null")]
    pub webhooks: Vec<Webhook>,
    /// The name of the server.
    pub server_name: String,
    /// The transport of the server.
    pub transport: Transport,
}

/// Authorization.
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct Authorization {
    /// A file with the settings. It has no effect if `config_data` is set.
    pub config_path: String,
    /// The settings: an [`AuthzDocument`](crate::run_config::AuthzDocument).
    pub config_data: Option<Json>,
}

/// Signing of requests for AWS.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct AwsStsParameters {
    /// The settings.
    pub aws_sts_config: AwsSts,
    /// The address of the remote server.
    pub target_url: String,
}

/// The headers that are added.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct HeaderForwardParameters {
    /// The headers with their values.
    #[serde(with = "null")]
    pub add_headers: BTreeMap<String, String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_limit_is_never_off() {
        for max_bytes in [-1, 0] {
            assert_eq!(BodyLimit { max_bytes }.max_bytes(), BodyLimit::default().max_bytes());
        }
        assert_eq!(BodyLimit { max_bytes: 1 }.max_bytes(), 1);
    }
}
