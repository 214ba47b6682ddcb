//! The RunConfig file: the configuration of a proxy.

mod audit;
mod authz;
mod aws_sts;
mod chain;
mod headers;
mod middleware;
mod oidc;
mod permissions;
mod rate_limit;
mod remote_auth;
mod scaling;
mod telemetry;
mod token_exchange;
mod tools;
mod transport;
mod webhook;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_with::apply;
use skep_gocompat::{fold, json};

use crate::{AuthServer, Json, SchemaVersion, zero::zero};

pub use audit::*;
pub use authz::*;
pub use aws_sts::*;
pub use chain::ChainError;
pub use headers::*;
pub use middleware::*;
pub use oidc::*;
pub use permissions::*;
pub use rate_limit::*;
pub use remote_auth::*;
pub use scaling::*;
pub use telemetry::*;
pub use token_exchange::*;
pub use tools::*;
pub use transport::*;
pub use webhook::*;

/// The RunConfig file. Its fields have the order of the file.
///
/// Unknown keys are ignored. Keys match in any case, as in ToolHive: otherwise `"issuer"` in `oidc_config` would be unknown,
/// and tokens of every issuer would be accepted.
#[apply(_ => #[serde(default, skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct RunConfig {
    /// The version of this format.
    #[serde_with(skip_apply)]
    #[serde(default)]
    pub schema_version: SchemaVersion,
    /// The generation of the MCPServer that the file was made from. 0 means that it has none.
    pub mcpserver_generation: i64,
    /// The image of the server. The command line of a proxy overrides it. Empty for a remote server.
    #[serde_with(skip_apply)]
    #[serde(default)]
    pub image: String,
    /// The address of a remote server. If it is set, the proxy starts no server.
    pub remote_url: String,
    /// The API address of the registry that lists the server. It has no effect.
    pub registry_api_url: String,
    /// The address of the registry that lists the server. It has no effect.
    pub registry_url: String,
    /// The name of the server in the registry. It has no effect.
    pub registry_server_name: String,
    /// How the proxy authenticates to a remote server.
    pub remote_auth_config: Option<RemoteAuth>,
    /// Arguments for the server's container.
    pub cmd_args: Vec<String>,
    /// The name of the server in policies, limits, webhooks and telemetry.
    #[serde_with(skip_apply)]
    pub name: String,
    /// The name of the server's StatefulSet.
    pub container_name: String,
    /// The name of the server, before any suffix.
    pub base_name: String,
    /// The transport of the server.
    #[serde_with(skip_apply)]
    pub transport: Transport,
    /// The address that the proxy listens on.
    pub host: String,
    /// The port that the proxy listens on.
    pub port: u16,
    /// The port that the server listens on.
    pub target_port: u16,
    /// The host that the server listens on. In a cluster, the proxy determines it.
    pub target_host: String,
    /// The web origins that may call. Others are rejected, unless the list is empty.
    pub allowed_origins: Vec<String>,
    /// Further ports of the server, as `host:container`.
    pub publish: Vec<String>,
    /// The permission profile by its name or path. It has no effect in a cluster.
    pub permission_profile_name_or_path: String,
    /// What the server may read, write and reach. It has no effect in a cluster.
    #[serde_with(skip_apply)]
    pub permission_profile: Option<PermissionProfile>,
    /// Environment variables for the server.
    pub env_vars: BTreeMap<String, String>,
    /// A folder of files with further environment variables, as the Vault Agent writes them.
    pub env_file_dir: String,
    /// Whether the proxy logs at debug level. The command line overrides it.
    pub debug: bool,
    /// Folders of the host for the server, as `host:container[:ro]`. It has no effect in a cluster.
    pub volumes: Vec<String>,
    /// Labels for the server's StatefulSet, its pods and its Services.
    pub container_labels: BTreeMap<String, String>,
    /// How callers' tokens are validated. Without it, every caller is accepted as one local user.
    pub oidc_config: Option<Oidc>,
    /// How callers' tokens are replaced by those of an upstream provider.
    pub upstream_swap_config: Option<UpstreamSwap>,
    /// How callers' tokens are exchanged for others.
    pub token_exchange_config: Option<TokenExchange>,
    /// How requests are signed for AWS with callers' tokens.
    pub aws_sts_config: Option<AwsSts>,
    /// The authorization: an [`AuthzDocument`], passed to the authorizer unchanged.
    pub authz_config: Option<Json>,
    /// A file with the authorization. It has no effect without `authz_config`.
    pub authz_config_path: String,
    /// The audit log. Without it, there is none.
    pub audit_config: Option<Audit>,
    /// A file with the settings of the audit log. It has no effect without `audit_config`.
    pub audit_config_path: String,
    /// Traces and metrics.
    pub telemetry_config: Option<Telemetry>,
    /// The rate limits of tool calls.
    pub rate_limit_config: Option<RateLimits>,
    /// The namespace of the rate limits.
    pub rate_limit_namespace: String,
    /// Secrets for the server, as `name,target=VARIABLE`.
    pub secrets: Vec<String>,
    /// A patch for the server's pod template, as JSON. The command line overrides it.
    pub k8s_pod_template_patch: String,
    /// Whether the server's network is isolated. It has no effect in a cluster.
    pub isolate_network: bool,
    /// Whether the server may reach the host of its container. It has no effect in a cluster.
    pub allow_docker_gateway: bool,
    /// Whether the `X-Forwarded-*` headers of requests are trusted.
    pub trust_proxy_headers: bool,
    /// Whether requests with unknown protocol revisions are rejected.
    pub strict_protocol_validation: bool,
    /// Whether the server has no sessions.
    pub stateless: bool,
    /// When an idle session expires, as a Go duration. The default is two hours.
    pub session_ttl: String,
    /// The transport between clients and the proxy of a stdio server: see [`RunConfig::proxy_mode`].
    pub proxy_mode: Option<ProxyMode>,
    /// A copy of the certificate authority in `oidc_config`. It has no effect.
    pub thv_ca_bundle: String,
    /// A copy of the token file in `oidc_config`. It has no effect.
    pub jwks_auth_token_file: String,
    /// The group of the server. It has no effect.
    pub group: String,
    /// The tools to offer, by the names that clients see. Empty means all.
    pub tools_filter: Vec<String>,
    /// Overrides of tools' names and descriptions, by the names that the server gives them.
    pub tools_override: BTreeMap<String, ToolOverride>,
    /// The middleware chain, outermost first. If it is empty, the proxy derives it from the fields above, which
    /// otherwise have no effect on it.
    pub middleware_configs: Vec<Middleware>,
    /// Further middlewares of a chain that the proxy derives.
    pub additional_middleware_configs: Vec<Middleware>,
    /// Webhooks that may reject a request.
    pub validating_webhooks: Vec<Webhook>,
    /// Webhooks that may change a request.
    pub mutating_webhooks: Vec<Webhook>,
    /// A path prefix for the endpoint that an SSE server announces.
    pub endpoint_prefix: String,
    /// Headers to add to requests to a remote server.
    pub header_forward: Option<HeaderForward>,
    /// The authorization server to run within the proxy.
    pub embedded_auth_server_config: Option<AuthServer>,
    /// The number of servers, and the store of their sessions.
    pub scaling_config: Option<Scaling>,
}

impl RunConfig {
    /// The file with this text.
    pub fn parse(text: &str) -> serde_json::Result<Self> {
        fold::from_str(text)
    }

    /// The text of the file: see [`json::render`].
    pub fn render(&self) -> serde_json::Result<String> {
        json::render(self)
    }

    /// The middleware chain, outermost first: the configured one, or the one that follows from the other fields.
    pub fn middleware(&self) -> Result<Vec<Middleware>, ChainError> {
        if self.middleware_configs.is_empty() {
            chain::middleware(self)
        } else {
            Ok(self.middleware_configs.clone())
        }
    }

    /// The transport between clients and the proxy. Only a stdio server has a choice: for others it is that of the
    /// server.
    pub fn proxy_mode(&self) -> ProxyMode {
        match self.transport {
            Transport::Stdio => self.proxy_mode.unwrap_or_default(),
            Transport::Sse => ProxyMode::Sse,
            Transport::StreamableHttp => ProxyMode::StreamableHttp,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAST: &str = r#"{"name": "files", "transport": "stdio"}"#;

    #[test]
    fn a_file_needs_a_name_and_a_transport() {
        let config = RunConfig::parse(LEAST).unwrap();
        assert_eq!(config, RunConfig { name: "files".into(), ..RunConfig::default() });
        assert!(RunConfig::parse(r#"{"transport": "stdio"}"#).is_err());
        assert!(RunConfig::parse(r#"{"name": "files"}"#).is_err());
    }

    #[test]
    fn what_is_not_set_is_left_out() {
        let rendered = RunConfig::parse(LEAST).unwrap().render().unwrap();
        let expected = r#"{
  "schema_version": "v0.1.0",
  "image": "",
  "name": "files",
  "transport": "stdio",
  "permission_profile": null
}"#;
        similar_asserts::assert_eq!(rendered, expected);
    }

    #[test]
    fn unknown_keys_are_ignored() {
        let text = r#"{"name": "files", "transport": "stdio", "new": {"in": ["next", "version"]}}"#;
        assert_eq!(RunConfig::parse(text).unwrap(), RunConfig::parse(LEAST).unwrap());
    }

    #[test]
    fn no_check_is_dropped_because_of_the_case_of_its_key() {
        let text = r#"{"Name": "files", "TRANSPORT": "stdio", "OIDC_config": {"issuer": "https://i", "audience": "a"},
            "middleware_configs": [{"Type": "bodylimit", "Parameters": {"Max_Bytes": 512}}]}"#;
        let config = RunConfig::parse(text).unwrap();
        let oidc = Oidc { issuer: "https://i".into(), audience: "a".into(), ..Oidc::default() };
        assert_eq!(config.oidc_config, Some(oidc));
        assert_eq!(config.middleware_configs, [Middleware::BodyLimit(BodyLimit { max_bytes: 512 })]);
    }

    #[test]
    fn only_a_stdio_server_has_a_choice_of_proxy_mode() {
        let mode =
            |transport, proxy_mode| RunConfig { transport, proxy_mode, ..RunConfig::default() }.proxy_mode();
        assert_eq!(mode(Transport::Stdio, None), ProxyMode::StreamableHttp);
        assert_eq!(mode(Transport::Stdio, Some(ProxyMode::Sse)), ProxyMode::Sse);
        assert_eq!(mode(Transport::Sse, Some(ProxyMode::StreamableHttp)), ProxyMode::Sse);
        assert_eq!(mode(Transport::StreamableHttp, Some(ProxyMode::Sse)), ProxyMode::StreamableHttp);
    }
}
