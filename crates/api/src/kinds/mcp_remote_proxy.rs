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
    workload::{
        Audit, DEFAULT_PROXY_PORT, HeaderForward, ProxyOverrides, RemoteTransport, Resources,
        SessionAffinity, SessionStorage,
    },
};

/// An MCPRemoteProxy puts a proxy in the cluster in front of an MCP server that runs somewhere else, so that the
/// cluster's own rules apply to it: who may call it, which tools they see, and what is recorded.
/// The address to give to MCP clients is in status.url.
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
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "!(has(self.authzConfig) && has(self.authzConfigRef))",
    "message": "authzConfig and authzConfigRef cannot both be set: keep the policies in one place",
}]))]
pub struct MCPRemoteProxySpec {
    /// The address of the remote MCP server. Addresses of the node, of the cluster's own API and of cloud metadata
    /// services are always refused.
    #[schemars(regex(pattern = "^https?://"))]
    pub remote_url: String,
    /// Whether remoteUrl may be a private address or a name within the cluster.
    #[schemars(extend("default" = false))]
    pub allow_private_endpoint: Option<bool>,
    /// How the remote server speaks MCP.
    #[schemars(extend("default" = RemoteTransport::default()))]
    pub transport: Option<RemoteTransport>,
    /// The port that the proxy and its Service listen on.
    #[schemars(range(min = 1, max = 65535), extend("default" = DEFAULT_PROXY_PORT))]
    pub proxy_port: Option<i32>,
    /// Headers to add to every request to the remote server.
    pub header_forward: Option<HeaderForward>,
    /// Whose tokens the proxy accepts. Without it, every request is accepted, as one local user.
    pub oidc_config_ref: Option<OidcConfigRef>,
    /// Policies that decide which requests are let through. Use authzConfigRef to share them between servers.
    pub authz_config: Option<AuthzConfig>,
    /// An MCPAuthzConfig whose policies decide which requests are let through.
    pub authz_config_ref: Option<AuthzConfigRef>,
    /// The audit log of requests.
    pub audit: Option<Audit>,
    /// An MCPToolConfig that chooses which tools are offered, and under what names.
    pub tool_config_ref: Option<ToolConfigRef>,
    /// An MCPExternalAuthConfig that says how the proxy authenticates to the remote server.
    pub external_auth_config_ref: Option<ExternalAuthConfigRef>,
    /// An MCPExternalAuthConfig of type embeddedAuthServer: the proxy then is an OAuth authorization server as well.
    pub auth_server_ref: Option<AuthServerRef>,
    /// An MCPTelemetryConfig that says where traces and metrics go.
    pub telemetry_config_ref: Option<TelemetryConfigRef>,
    /// What the proxy's container asks for and may use.
    pub resources: Option<Resources>,
    /// An existing ServiceAccount for the proxy's pod. Without it, one is made for this proxy alone, together with
    /// the permissions that it needs.
    pub service_account: Option<String>,
    /// A patch for the proxy's pod, in the format of a pod template. Lists are merged by name; the proxy's container
    /// is called toolhive.
    pub pod_template_spec: Option<RawObject>,
    /// Additions to the proxy's Deployment, pods and Service.
    pub resource_overrides: Option<ProxyOverrides>,
    /// Whether X-Forwarded-* headers of requests are believed. Set it only behind a proxy that sets them itself.
    #[schemars(extend("default" = false))]
    pub trust_proxy_headers: Option<bool>,
    /// A path that goes before the endpoint's in what SSE clients are told, for a proxy behind an ingress that
    /// strips it.
    pub endpoint_prefix: Option<String>,
    /// The MCPGroup that this proxy is a member of. A VirtualMCPServer serves the members of a group.
    pub group_ref: Option<GroupRef>,
    /// Whether a client's requests keep going to the same proxy pod.
    #[schemars(extend("default" = SessionAffinity::default()))]
    pub session_affinity: Option<SessionAffinity>,
    /// How many proxy pods to run. Leave it out to let an autoscaler or kubectl scale decide.
    #[schemars(range(min = 0))]
    pub replicas: Option<i32>,
    /// Where sessions are kept. Needed for more than one replica.
    pub session_storage: Option<SessionStorage>,
}

impl MCPRemoteProxySpec {
    /// How the remote server speaks MCP.
    pub fn transport(&self) -> RemoteTransport {
        self.transport.unwrap_or_default()
    }

    /// The port of the proxy and its Service.
    pub fn proxy_port(&self) -> i32 {
        self.proxy_port.unwrap_or(DEFAULT_PROXY_PORT)
    }
}

text_enum! {
    /// Where an MCPRemoteProxy is in its life.
    pub enum MCPRemoteProxyPhase {
        /// Its pods are on their way.
        #[default]
        Pending = "Pending",
        /// It answers requests.
        Ready = "Ready",
        /// It cannot run as it is: status.message and the conditions say why.
        Failed = "Failed",
        /// It is being deleted.
        Terminating = "Terminating",
    }
}

/// What is known of an MCPRemoteProxy.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MCPRemoteProxyStatus {
    /// The generation of the spec that this status is about.
    pub observed_generation: Option<i64>,
    /// Where the proxy is in its life, in one word.
    pub phase: Option<MCPRemoteProxyPhase>,
    /// Why the phase is what it is, in one sentence.
    pub message: Option<String>,
    /// The address of the proxy within the cluster: what to give to an MCP client.
    pub url: Option<String>,
    /// The address of the proxy from outside the cluster, where one is known.
    pub external_url: Option<String>,
    /// How many proxy pods there are.
    pub replicas: Option<i32>,
    /// The labels of the proxy pods, as a selector: how an autoscaler finds them.
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
    /// The state of the proxy, aspect by aspect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions::schema")]
    pub conditions: Conditions,
}
