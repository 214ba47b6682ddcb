//! MCPRemoteProxy: a proxy in front of an MCP server that runs elsewhere.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::{
    RawObject,
    authz::AuthzConfig,
    conditions::{self, Conditions},
    enums::text_enum,
    refs::{
        AuthServerRef, AuthzConfigRef, ExternalAuthConfigRef, GroupRef, OidcConfigRef, TelemetryConfigRef,
        ToolConfigRef,
    },
    server_report::ServerReport,
    workload::{
        Audit, DEFAULT_PROXY_PORT, HeaderForward, ProxyOverrides, RemoteTransport, Resources,
        SessionAffinity, SessionStorage,
    },
};

/// An MCPRemoteProxy puts a proxy in the cluster in front of an MCP server that runs somewhere else, so that the
/// cluster's own policies apply to it: which callers are allowed, which tools they see, and what is logged. The
/// address for MCP clients is in status.url.
#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "toolhive.stacklok.dev",
    version = "v1beta1",
    kind = "MCPRemoteProxy",
    plural = "mcpremoteproxies",
    shortname = "rp",
    shortname = "mcprp",
    category = "toolhive",
    namespaced,
    schema = "disabled",
    status = "MCPRemoteProxyStatus",
    derive = "Default",
    derive = "PartialEq",
    scale(
        spec_replicas_path = ".spec.replicas",
        status_replicas_path = ".status.replicas",
        label_selector_path = ".status.selector"
    ),
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(name = "Remote URL", type_ = "string", json_path = ".spec.remoteUrl"),
    printcolumn(name = "URL", type_ = "string", json_path = ".status.url"),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Ready')].status"
    ),
    printcolumn(name = "Tools", type_ = "integer", json_path = ".status.server.toolCount"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "!(has(self.authzConfig) && has(self.authzConfigRef))",
    "message": "authzConfig and authzConfigRef cannot both be set: keep the policies in one place",
}]))]
pub struct MCPRemoteProxySpec {
    /// The address of the remote MCP server. Addresses of the node, of the cluster's own API and of cloud metadata
    /// services are always rejected.
    #[schemars(regex(pattern = "^https?://"))]
    pub remote_url: String,
    /// Whether remoteUrl may be a private address or a name within the cluster.
    #[schemars(extend("default" = false))]
    pub allow_private_endpoint: Option<bool>,
    /// The MCP transport of the remote server.
    #[schemars(extend("default" = RemoteTransport::default()))]
    pub transport: Option<RemoteTransport>,
    /// The port that the proxy and its Service listen on.
    #[schemars(range(min = 1, max = 65535), extend("default" = DEFAULT_PROXY_PORT))]
    pub proxy_port: Option<i32>,
    /// Headers to add to every request to the remote server.
    pub header_forward: Option<HeaderForward>,
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
    /// An MCPExternalAuthConfig that defines how the proxy authenticates to the remote server.
    pub external_auth_config_ref: Option<ExternalAuthConfigRef>,
    /// An MCPExternalAuthConfig of type embeddedAuthServer: the proxy then also runs an OAuth authorization server.
    pub auth_server_ref: Option<AuthServerRef>,
    /// An MCPTelemetryConfig that configures traces and metrics.
    pub telemetry_config_ref: Option<TelemetryConfigRef>,
    /// The resource requests and limits of the proxy's container.
    pub resources: Option<Resources>,
    /// An existing ServiceAccount for the proxy's pod. Without it, a dedicated one is created, with the permissions
    /// that the proxy needs.
    pub service_account: Option<String>,
    /// A patch for the proxy's pod, in the format of a pod template. Lists are merged by name; the proxy's container
    /// is called toolhive.
    pub pod_template_spec: Option<RawObject>,
    /// Additions to the proxy's Deployment, pods and Service.
    pub resource_overrides: Option<ProxyOverrides>,
    /// Whether X-Forwarded-* headers of requests are trusted. Set it only behind a proxy that sets them itself.
    #[schemars(extend("default" = false))]
    pub trust_proxy_headers: Option<bool>,
    /// A path prefix for the endpoint URL that is sent to SSE clients, for a proxy behind an ingress that strips the
    /// prefix.
    pub endpoint_prefix: Option<String>,
    /// The MCPGroup that this proxy is a member of. A VirtualMCPServer serves the members of a group.
    pub group_ref: Option<GroupRef>,
    /// Whether requests of a client are always sent to the same proxy pod.
    #[schemars(extend("default" = SessionAffinity::default()))]
    pub session_affinity: Option<SessionAffinity>,
    /// How many proxy pods to run. Leave it out to scale with an autoscaler or kubectl scale.
    #[schemars(range(min = 0))]
    pub replicas: Option<i32>,
    /// Where sessions are stored. Needed for more than one replica.
    pub session_storage: Option<SessionStorage>,
}

impl MCPRemoteProxySpec {
    /// The MCP transport of the remote server.
    pub fn transport(&self) -> RemoteTransport {
        self.transport.unwrap_or_default()
    }

    /// The port of the proxy and its Service.
    pub fn proxy_port(&self) -> i32 {
        self.proxy_port.unwrap_or(DEFAULT_PROXY_PORT)
    }
}

text_enum! {
    /// The phase of an MCPRemoteProxy.
    pub enum MCPRemoteProxyPhase {
        /// Its pods are starting.
        #[default]
        Pending = "Pending",
        /// It serves requests.
        Ready = "Ready",
        /// It cannot run: see status.message and the conditions.
        Failed = "Failed",
        /// It is being deleted.
        Terminating = "Terminating",
    }
}

/// The observed state of an MCPRemoteProxy.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MCPRemoteProxyStatus {
    /// The generation of the spec that this status was computed from.
    pub observed_generation: Option<i64>,
    /// A one-word summary of the conditions.
    pub phase: Option<MCPRemoteProxyPhase>,
    /// The reason for the phase, in one sentence.
    pub message: Option<String>,
    /// The address of the proxy within the cluster, for MCP clients.
    pub url: Option<String>,
    /// The external address of the proxy, if known.
    pub external_url: Option<String>,
    /// The number of proxy pods.
    pub replicas: Option<i32>,
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
    /// What the server offers, as its proxy has seen it.
    pub server: Option<ServerReport>,
    /// The conditions of the proxy.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions::schema")]
    pub conditions: Conditions,
}
