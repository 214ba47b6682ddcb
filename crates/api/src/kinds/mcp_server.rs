//! MCPServer: one MCP server, run in the cluster, with a proxy in front of it.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::{
    RawObject,
    authz::AuthzConfig,
    conditions::{self, Conditions},
    enums::text_enum,
    list,
    rate_limit::RateLimiting,
    refs::{
        AuthServerRef, AuthzConfigRef, ExternalAuthConfigRef, GroupRef, OidcConfigRef, TelemetryConfigRef,
        ToolConfigRef, WebhookConfigRef,
    },
    server_report::ServerReport,
    workload::{
        Audit, DEFAULT_PROXY_PORT, EnvVar, MetadataOverrides, ProxyDeploymentOverrides, ProxyOverrides,
        Resources, SessionAffinity, SessionStorage,
    },
};

/// An MCPServer runs one MCP server from a container image. skep starts the server, puts a proxy in front of it that
/// authenticates, authorizes, rate-limits and audits requests, and exposes the proxy as a Service. The address for
/// MCP clients is in status.url.
#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "toolhive.stacklok.dev",
    version = "v1beta1",
    kind = "MCPServer",
    plural = "mcpservers",
    shortname = "mcpserver",
    shortname = "mcpservers",
    category = "toolhive",
    namespaced,
    schema = "disabled",
    status = "MCPServerStatus",
    derive = "Default",
    derive = "PartialEq",
    scale(
        spec_replicas_path = ".spec.replicas",
        status_replicas_path = ".status.replicas",
        label_selector_path = ".status.selector"
    ),
    printcolumn(name = "Status", type_ = "string", json_path = ".status.phase"),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Ready')].status"
    ),
    printcolumn(name = "Replicas", type_ = "integer", json_path = ".status.readyReplicas"),
    printcolumn(name = "URL", type_ = "string", json_path = ".status.url"),
    printcolumn(name = "Tools", type_ = "integer", json_path = ".status.server.toolCount"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {
        "rule": "!(has(self.authzConfig) && has(self.authzConfigRef))",
        "message": "authzConfig and authzConfigRef cannot both be set: keep the policies in one place",
    },
    {
        "rule": "!has(self.rateLimiting) || (has(self.sessionStorage) && self.sessionStorage.provider == 'redis')",
        "message": "rateLimiting needs sessionStorage with provider redis, where the counters are stored",
    },
    {
        "rule": "!(has(self.rateLimiting) && has(self.rateLimiting.perUser)) || has(self.oidcConfigRef) || has(self.externalAuthConfigRef)",
        "message": "rateLimiting.perUser needs authenticated callers: set oidcConfigRef or externalAuthConfigRef",
    },
    {
        "rule": "!has(self.rateLimiting) || !has(self.rateLimiting.tools) || self.rateLimiting.tools.all(t, !has(t.perUser)) || has(self.oidcConfigRef) || has(self.externalAuthConfigRef)",
        "message": "rateLimiting.tools[].perUser needs authenticated callers: set oidcConfigRef or externalAuthConfigRef",
    },
]))]
pub struct MCPServerSpec {
    /// The container image of the MCP server.
    pub image: String,
    /// The MCP transport of the server.
    #[schemars(extend("default" = Transport::default()))]
    pub transport: Option<Transport>,
    /// How the proxy offers a stdio server to clients. It has no effect on servers that speak HTTP: they keep their
    /// transport.
    #[schemars(extend("default" = ProxyMode::default()))]
    pub proxy_mode: Option<ProxyMode>,
    /// The port that the proxy and its Service listen on.
    #[schemars(range(min = 1, max = 65535), extend("default" = DEFAULT_PROXY_PORT))]
    pub proxy_port: Option<i32>,
    /// The port that the server listens on within its pod, for the transports sse and streamable-http. The default is
    /// 8080. The server gets it in the environment variables MCP_PORT and FASTMCP_PORT.
    #[schemars(range(min = 1, max = 65535))]
    pub mcp_port: Option<i32>,
    /// Arguments for the server's container.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = list::atomic)]
    pub args: Vec<String>,
    /// Environment variables for the server's container.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = list::by_name)]
    pub env: Vec<EnvVar>,
    /// Directories of the node to mount into the proxy's pod, not into the server's: mount the server's volumes
    /// through podTemplateSpec, on the container mcp.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = list::by_name)]
    pub volumes: Vec<HostVolume>,
    /// The resource requests and limits of the proxy's container. For the server's own container, use
    /// podTemplateSpec.
    pub resources: Option<Resources>,
    /// Secrets that become environment variables of the server's container. Each Secret can be listed once; for
    /// several keys of one Secret, use podTemplateSpec.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = list::by_name)]
    pub secrets: Vec<SecretEnv>,
    /// An existing ServiceAccount for the server's pod. Without it, a dedicated one without permissions is created.
    pub service_account: Option<String>,
    /// The permissions that the server is intended to have. They are passed to the proxy; Kubernetes does not enforce
    /// them.
    pub permission_profile: Option<PermissionProfile>,
    /// A patch for the server's pod, in the format of a pod template. Name the server's container mcp to change it.
    pub pod_template_spec: Option<RawObject>,
    /// Additions to the proxy's Deployment, pods and Service.
    pub resource_overrides: Option<ProxyOverrides>,
    /// The issuer whose tokens the proxy accepts. Without it, callers are not authenticated: every request is
    /// accepted, as one local user.
    pub oidc_config_ref: Option<OidcConfigRef>,
    /// Policies that decide which requests are allowed. Use authzConfigRef to share them between servers.
    pub authz_config: Option<AuthzConfig>,
    /// An MCPAuthzConfig whose policies decide which requests are allowed.
    pub authz_config_ref: Option<AuthzConfigRef>,
    /// The audit log of requests.
    pub audit: Option<Audit>,
    /// An MCPToolConfig that selects which tools are offered, and under which names.
    pub tool_config_ref: Option<ToolConfigRef>,
    /// An MCPExternalAuthConfig that defines how the proxy authenticates to the server.
    pub external_auth_config_ref: Option<ExternalAuthConfigRef>,
    /// An MCPWebhookConfig with webhooks that inspect, change or reject requests.
    pub webhook_config_ref: Option<WebhookConfigRef>,
    /// An MCPExternalAuthConfig of type embeddedAuthServer: the proxy then also runs an OAuth authorization server.
    pub auth_server_ref: Option<AuthServerRef>,
    /// An MCPTelemetryConfig that configures traces and metrics.
    pub telemetry_config_ref: Option<TelemetryConfigRef>,
    /// Whether X-Forwarded-* headers of requests are trusted. Set it only behind a proxy that sets them itself.
    #[schemars(extend("default" = false))]
    pub trust_proxy_headers: Option<bool>,
    /// A path prefix for the endpoint URL that is sent to SSE clients, for a server behind an ingress that strips the
    /// prefix.
    pub endpoint_prefix: Option<String>,
    /// The MCPGroup that this server is a member of. A VirtualMCPServer serves the members of a group.
    pub group_ref: Option<GroupRef>,
    /// Whether requests of a client are always sent to the same proxy pod.
    #[schemars(extend("default" = SessionAffinity::default()))]
    pub session_affinity: Option<SessionAffinity>,
    /// How many proxy pods to run. Leave it out to scale with an autoscaler or kubectl scale. A stdio server has at
    /// most one, because it is a single process with one standard input.
    #[schemars(range(min = 0))]
    pub replicas: Option<i32>,
    /// How many server pods to run. Leave it out to scale with an autoscaler or kubectl scale.
    #[schemars(range(min = 0))]
    pub backend_replicas: Option<i32>,
    /// Where sessions are stored. Needed for more than one replica and for rateLimiting.
    pub session_storage: Option<SessionStorage>,
    /// Limits on how often tools are called.
    pub rate_limiting: Option<RateLimiting>,
}

impl MCPServerSpec {
    /// The port that the server listens on by default.
    pub const DEFAULT_MCP_PORT: i32 = 8080;

    /// The MCP transport of the server.
    pub fn transport(&self) -> Transport {
        self.transport.unwrap_or_default()
    }

    /// Whether clients use the transport of 2024: only for a stdio server do they use another than the server itself.
    pub fn serves_sse(&self) -> bool {
        match self.transport() {
            Transport::Stdio => self.proxy_mode() == ProxyMode::Sse,
            Transport::Sse => true,
            Transport::StreamableHttp => false,
        }
    }

    /// How the proxy offers a stdio server.
    pub fn proxy_mode(&self) -> ProxyMode {
        self.proxy_mode.unwrap_or_default()
    }

    /// The port of the proxy and its Service.
    pub fn proxy_port(&self) -> i32 {
        self.proxy_port.unwrap_or(DEFAULT_PROXY_PORT)
    }

    /// The additions to the proxy's Deployment.
    pub fn proxy_deployment(&self) -> Option<&ProxyDeploymentOverrides> {
        self.resource_overrides.as_ref()?.proxy_deployment.as_ref()
    }

    /// The additions to the proxy's Service.
    pub fn proxy_service(&self) -> Option<&MetadataOverrides> {
        self.resource_overrides.as_ref()?.proxy_service.as_ref()
    }

    /// The port of the server within its pod.
    pub fn mcp_port(&self) -> i32 {
        self.mcp_port.unwrap_or(Self::DEFAULT_MCP_PORT)
    }
}

text_enum! {
    /// The MCP transport of a server.
    pub enum Transport {
        /// Standard input and output of its process.
        #[default]
        Stdio = "stdio",
        /// Streamable HTTP.
        StreamableHttp = "streamable-http",
        /// HTTP with server-sent events, the deprecated transport of 2024. New servers speak streamable-http.
        Sse = "sse",
    }
}

text_enum! {
    /// How the proxy offers a stdio server to clients.
    pub enum ProxyMode {
        /// As HTTP with server-sent events, for old clients.
        Sse = "sse",
        /// As streamable HTTP.
        #[default]
        StreamableHttp = "streamable-http",
    }
}

/// A directory of the node.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostVolume {
    /// A name for the volume, unique within the pod.
    pub name: String,
    /// The directory on the node.
    pub host_path: String,
    /// Where it appears in the container.
    pub mount_path: String,
    /// Whether it is mounted read-only.
    #[schemars(extend("default" = false))]
    pub read_only: Option<bool>,
}

/// A Secret key that becomes an environment variable.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecretEnv {
    /// The name of the Secret, in the same namespace.
    pub name: String,
    /// The key within the Secret.
    pub key: String,
    /// The name of the variable. The default is the key.
    pub target_env_name: Option<String>,
}

text_enum! {
    /// Where a permission profile comes from.
    pub enum PermissionProfileType {
        /// One of the profiles that are built in: none or network.
        #[default]
        Builtin = "builtin",
        /// A key of a ConfigMap.
        ConfigMap = "configmap",
    }
}

/// A named set of permissions.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PermissionProfile {
    /// Where the profile comes from.
    #[serde(rename = "type")]
    #[schemars(required, extend("default" = PermissionProfileType::default()))]
    pub type_: Option<PermissionProfileType>,
    /// The name of the built-in profile, or of the ConfigMap.
    pub name: String,
    /// The key within the ConfigMap. Set it with type configmap.
    pub key: Option<String>,
}

text_enum! {
    /// The phase of an MCPServer.
    pub enum MCPServerPhase {
        /// Its pods are starting.
        #[default]
        Pending = "Pending",
        /// It serves requests.
        Ready = "Ready",
        /// It cannot run: see status.message and the conditions.
        Failed = "Failed",
        /// It is being deleted.
        Terminating = "Terminating",
        /// It was scaled to zero.
        Stopped = "Stopped",
    }
}

/// The observed state of an MCPServer.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MCPServerStatus {
    /// The generation of the spec that this status was computed from.
    pub observed_generation: Option<i64>,
    /// A one-word summary of the conditions.
    pub phase: Option<MCPServerPhase>,
    /// The reason for the phase, in one sentence.
    pub message: Option<String>,
    /// The address of the server within the cluster, for MCP clients.
    pub url: Option<String>,
    /// The number of proxy pods.
    pub replicas: Option<i32>,
    /// The number of ready proxy pods.
    pub ready_replicas: Option<i32>,
    /// The label selector of the proxy pods, for autoscalers.
    pub selector: Option<String>,
    /// The hash of the MCPToolConfig that is in use.
    pub tool_config_hash: Option<String>,
    /// The hash of the MCPExternalAuthConfig that is in use.
    pub external_auth_config_hash: Option<String>,
    /// The hash of the authorization server's configuration that is in use.
    pub auth_server_config_hash: Option<String>,
    /// The hash of the MCPAuthzConfig that is in use.
    pub authz_config_hash: Option<String>,
    /// The hash of the MCPOIDCConfig that is in use.
    pub oidc_config_hash: Option<String>,
    /// The hash of the MCPTelemetryConfig that is in use.
    pub telemetry_config_hash: Option<String>,
    /// The hash of the MCPWebhookConfig that is in use.
    pub webhook_config_hash: Option<String>,
    /// What the server offers, as its proxy has seen it.
    pub server: Option<ServerReport>,
    /// The conditions of the server.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions::schema")]
    pub conditions: Conditions,
}
