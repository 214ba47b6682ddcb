//! What single middlewares need to know. Most of it repeats a field of the RunConfig: a chain stands on its own.

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

/// How large bodies may be.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct BodyLimit {
    /// The largest body that passes, in bytes: see [`BodyLimit::max_bytes`].
    pub max_bytes: i64,
}

impl BodyLimit {
    const DEFAULT_MAX_BYTES: u32 = 8 * 1024 * 1024;

    /// The largest body that passes, in bytes. What is not positive stands for the default, 8 MiB.
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

/// Which web pages may call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct Origin {
    /// Their origins.
    #[serde(with = "null")]
    pub allowed_origins: Vec<String>,
}

/// What is written to the audit log.
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct AuditParameters {
    /// A file that says it. It has no effect if `config_data` is there.
    pub config_path: String,
    /// What is written.
    pub config_data: Option<Audit>,
    /// The name that entries carry.
    pub component: String,
    /// How the server is spoken to.
    pub transport_type: Option<Transport>,
}

/// How callers' tokens are checked.
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct Auth {
    /// How they are checked. Without it, every caller is accepted as one local user.
    pub oidc_config: Option<Oidc>,
}

/// How callers' tokens are replaced.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct UpstreamSwapParameters {
    /// How they are replaced.
    pub config: UpstreamSwap,
}

/// How callers' tokens are exchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct TokenExchangeParameters {
    /// How they are exchanged.
    pub token_exchange_config: TokenExchange,
}

/// Which tools there are for clients.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct ToolFilter {
    /// The tools to offer, by the names that clients see. Empty means all.
    #[serde(with = "null")]
    pub filter_tools: Vec<String>,
    /// What clients are told about tools, by the names that the server gives them.
    pub tools_override: BTreeMap<String, ToolOverride>,
}

/// Which traces and metrics there are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct TelemetryParameters {
    /// Which there are, and where they go.
    pub config: Telemetry,
    /// The name of the server.
    pub server_name: String,
    /// How the server is spoken to.
    pub transport: Transport,
}

/// How often tools may be called.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct RateLimit {
    /// The namespace of the server.
    pub namespace: String,
    /// The name of the server.
    pub server_name: String,
    /// How often.
    pub config: RateLimits,
    /// The Redis where calls are counted, as `host:port`.
    pub redis_addr: String,
    /// The number of the database there.
    pub redis_db: i32,
}

impl RateLimit {
    /// Stands where the address of a Redis does, for a proxy that shares its buckets with no other.
    pub const IN_MEMORY: &str = "memory://";
}

/// Who is asked about requests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct Webhooks {
    /// The services, in the order in which they are asked.
    #[serde(with = "null")]
    pub webhooks: Vec<Webhook>,
    /// The name of the server.
    pub server_name: String,
    /// How the server is spoken to.
    pub transport: Transport,
}

/// Who may do what.
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct Authorization {
    /// A file that says it. It has no effect if `config_data` is there.
    pub config_path: String,
    /// Who may do what: an [`AuthzDocument`](crate::run_config::AuthzDocument).
    pub config_data: Option<Json>,
}

/// How requests are signed for AWS.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct AwsStsParameters {
    /// How they are signed.
    pub aws_sts_config: AwsSts,
    /// The address of the remote server.
    pub target_url: String,
}

/// Which headers are added.
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
