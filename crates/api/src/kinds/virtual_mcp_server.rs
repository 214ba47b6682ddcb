//! VirtualMCPServer: one MCP server for the tools of a whole group.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::{
    RawObject,
    auth_server::EmbeddedAuthServer,
    authz::AuthzConfig,
    conditions::{self, Conditions},
    enums::text_enum,
    list, number,
    refs::{
        AuthzConfigRef, EmbeddingServerRef, ExternalAuthConfigRef, GroupRef, LocalObjectReference,
        OidcConfigRef, TelemetryConfigRef,
    },
    vmcp,
    workload::{SessionAffinity, SessionStorage},
};

/// A VirtualMCPServer combines all members of an MCPGroup into one MCP server. Clients connect only to it: it offers
/// the tools, resources and prompts of all members, routes each call to the member that has the tool, and
/// authenticates to each member as configured. The address for MCP clients is in status.url.
#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "toolhive.stacklok.dev",
    version = "v1beta1",
    kind = "VirtualMCPServer",
    plural = "virtualmcpservers",
    shortname = "vmcp",
    shortname = "virtualmcp",
    category = "toolhive",
    namespaced,
    schema = "disabled",
    status = "VirtualMCPServerStatus",
    derive = "Default",
    derive = "PartialEq",
    scale(
        spec_replicas_path = ".spec.replicas",
        status_replicas_path = ".status.replicas",
        label_selector_path = ".status.selector"
    ),
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(name = "URL", type_ = "string", json_path = ".status.url"),
    printcolumn(name = "Backends", type_ = "integer", json_path = ".status.backendCount"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Ready')].status"
    )
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {
        "rule": "!has(self.config) || !has(self.config.rateLimiting) || (has(self.sessionStorage) && self.sessionStorage.provider == 'redis')",
        "message": "config.rateLimiting needs sessionStorage with provider redis, where the counters are stored",
    },
    {
        "rule": "!(has(self.config) && has(self.config.rateLimiting) && has(self.config.rateLimiting.perUser)) || (has(self.incomingAuth) && self.incomingAuth.type == 'oidc')",
        "message": "config.rateLimiting.perUser needs authenticated callers: set incomingAuth.type to oidc",
    },
    {
        "rule": "!has(self.config) || !has(self.config.rateLimiting) || !has(self.config.rateLimiting.tools) || self.config.rateLimiting.tools.all(t, !has(t.perUser)) || (has(self.incomingAuth) && self.incomingAuth.type == 'oidc')",
        "message": "config.rateLimiting.tools[].perUser needs authenticated callers: set incomingAuth.type to oidc",
    },
    {
        "rule": "!(has(self.embeddingServerRef) && has(self.config) && has(self.config.optimizer) && has(self.config.optimizer.embeddingProvider) && self.config.optimizer.embeddingProvider == 'openai')",
        "message": "embeddingServerRef refers to a server of type tei: remove it, or set config.optimizer.embeddingProvider to tei",
    },
]))]
pub struct VirtualMCPServerSpec {
    /// The MCPGroup whose members are served. Members can be added and removed while the server runs.
    pub group_ref: GroupRef,
    /// How clients are authenticated, and what they may do.
    pub incoming_auth: IncomingAuth,
    /// How the server authenticates to the members of the group. Without it, by the externalAuthConfigRef of each
    /// member.
    pub outgoing_auth: Option<OutgoingAuth>,
    /// Headers of a client's request that are forwarded to the members, by name. Hop-by-hop headers and headers that
    /// carry the client's address or credentials, such as Host, X-Forwarded-For, Authorization and Cookie, are
    /// rejected.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = list::atomic)]
    pub passthrough_headers: Vec<String>,
    /// The configuration of the server: which tools are offered and under which names, composite tools, health
    /// checks, rate limits, tool search and the audit log.
    pub config: Option<vmcp::Config>,
    /// An MCPTelemetryConfig that configures traces and metrics.
    pub telemetry_config_ref: Option<TelemetryConfigRef>,
    /// An EmbeddingServer for the tool search. Setting it enables config.optimizer.
    pub embedding_server_ref: Option<EmbeddingServerRef>,
    /// Runs an OAuth authorization server in the server, with which users log in at upstream identity providers. It
    /// needs incomingAuth of type oidc, with this server's issuer.
    pub auth_server_config: Option<EmbeddedAuthServer>,
    /// The type of the server's Service.
    #[schemars(extend("default" = ServiceType::default()))]
    pub service_type: Option<ServiceType>,
    /// Whether requests of a client are always sent to the same pod.
    #[schemars(extend("default" = SessionAffinity::default()))]
    pub session_affinity: Option<SessionAffinity>,
    /// How many pods to run. Leave it out to scale with an autoscaler or kubectl scale.
    #[schemars(range(min = 0))]
    pub replicas: Option<i32>,
    /// Where sessions are stored. Needed for more than one replica and for config.rateLimiting.
    pub session_storage: Option<SessionStorage>,
    /// An existing ServiceAccount for the pods. Without it, a dedicated one is created, with only the permissions
    /// that the server needs; an existing one must have them as well.
    pub service_account: Option<String>,
    /// The image pull secrets. The operator's defaults are added.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = list::atomic)]
    pub image_pull_secrets: Vec<LocalObjectReference>,
    /// A patch for the pods, in the format of a pod template. Name the server's container vmcp to change it.
    pub pod_template_spec: Option<RawObject>,
}

text_enum! {
    /// How clients are authenticated.
    pub enum IncomingAuthType {
        /// Not at all: every request is accepted, as one anonymous user.
        #[default]
        Anonymous = "anonymous",
        /// By their tokens, as configured by oidcConfigRef.
        Oidc = "oidc",
    }
}

/// How clients are authenticated, and what they may do.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {
        "rule": "self.type == 'oidc' ? has(self.oidcConfigRef) : true",
        "message": "oidcConfigRef must be set when type is oidc",
    },
    {
        "rule": "!(has(self.authzConfig) && has(self.authzConfigRef))",
        "message": "authzConfig and authzConfigRef cannot both be set: keep the policies in one place",
    },
]))]
pub struct IncomingAuth {
    /// How clients are authenticated.
    #[serde(rename = "type")]
    pub type_: IncomingAuthType,
    /// The issuer whose tokens are accepted. Needed with type oidc.
    pub oidc_config_ref: Option<OidcConfigRef>,
    /// Policies that decide which requests are allowed. Use authzConfigRef to share them between servers.
    pub authz_config: Option<AuthzConfig>,
    /// An MCPAuthzConfig, of type cedarv1, whose policies decide which requests are allowed.
    pub authz_config_ref: Option<AuthzConfigRef>,
}

text_enum! {
    /// Where the configuration of authentication to the members of a group comes from.
    pub enum OutgoingAuthSource {
        /// From the members' own objects, which the running server watches: it follows them as they change.
        #[default]
        Discovered = "discovered",
        /// From the operator, which writes all members and their authentication into the server's configuration. The
        /// server needs no access to Secrets, and restarts when a member changes.
        Inline = "inline",
    }
}

/// How the server authenticates to the members of the group.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OutgoingAuth {
    /// Where the configuration comes from.
    #[schemars(extend("default" = OutgoingAuthSource::default()))]
    pub source: Option<OutgoingAuthSource>,
    /// The authentication to members without a configuration of their own.
    pub default: Option<BackendAuth>,
    /// The authentication to individual members, by the member's name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub backends: BTreeMap<String, BackendAuth>,
}

text_enum! {
    /// Where authentication is configured.
    pub enum BackendAuthType {
        /// In the member's own object.
        #[default]
        Discovered = "discovered",
        /// In the MCPExternalAuthConfig that externalAuthConfigRef names.
        ExternalAuthConfigRef = "externalAuthConfigRef",
    }
}

/// The authentication to a member of the group.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BackendAuth {
    /// Where the authentication is configured.
    #[serde(rename = "type")]
    pub type_: BackendAuthType,
    /// The MCPExternalAuthConfig with the configuration. Needed with type externalAuthConfigRef.
    pub external_auth_config_ref: Option<ExternalAuthConfigRef>,
}

text_enum! {
    /// The type of a Service.
    pub enum ServiceType {
        /// Within the cluster.
        #[default]
        ClusterIp = "ClusterIP",
        /// On a port of every node.
        NodePort = "NodePort",
        /// Through a load balancer.
        LoadBalancer = "LoadBalancer",
    }
}

text_enum! {
    /// The phase of a VirtualMCPServer.
    pub enum VirtualMCPServerPhase {
        /// Its pods are starting, or an object that it refers to is not ready.
        #[default]
        Pending = "Pending",
        /// It serves requests, and all backends are reachable.
        Ready = "Ready",
        /// It serves requests, but some backends are unreachable: see status.discoveredBackends.
        Degraded = "Degraded",
        /// It cannot run: see status.message and the conditions.
        Failed = "Failed",
    }
}

/// The observed state of a VirtualMCPServer.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VirtualMCPServerStatus {
    /// The generation of the spec that this status was computed from.
    pub observed_generation: Option<i64>,
    /// A one-word summary of the conditions.
    #[schemars(extend("default" = VirtualMCPServerPhase::default()))]
    pub phase: Option<VirtualMCPServerPhase>,
    /// The reason for the phase, in one sentence.
    pub message: Option<String>,
    /// The address of the server within the cluster, for MCP clients.
    pub url: Option<String>,
    /// The number of pods.
    pub replicas: Option<i32>,
    /// The label selector of the pods, for autoscalers.
    pub selector: Option<String>,
    /// The number of backends that requests can be routed to.
    pub backend_count: Option<i32>,
    /// The backends, as last reported by the running server.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = list::by_name)]
    pub discovered_backends: Vec<DiscoveredBackend>,
    /// The hash of the MCPAuthzConfig that is in use.
    pub authz_config_hash: Option<String>,
    /// The hash of the MCPOIDCConfig that is in use.
    pub oidc_config_hash: Option<String>,
    /// The hash of the MCPTelemetryConfig that is in use.
    pub telemetry_config_hash: Option<String>,
    /// The conditions of the server.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions::schema")]
    pub conditions: Conditions,
}

text_enum! {
    /// The state of the circuit breaker of a backend.
    pub enum CircuitBreakerState {
        /// The backend is in use.
        #[default]
        Closed = "closed",
        /// The backend is not used, because it kept failing.
        Open = "open",
        /// The backend is being tried again.
        HalfOpen = "half-open",
    }
}

/// A backend, as last reported by the running server.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DiscoveredBackend {
    /// The name of the backend.
    pub name: String,
    /// The URL that calls are routed to.
    pub url: Option<String>,
    /// Its health: ready, degraded, unavailable, unauthenticated or unknown.
    pub status: Option<String>,
    /// The reason for the status, in one sentence.
    pub message: Option<String>,
    /// The MCPExternalAuthConfig that defines how the server authenticates to it, by name.
    pub auth_config_ref: Option<String>,
    /// How the server authenticates to it, for example token_exchange.
    pub auth_type: Option<String>,
    /// The revision of the MCP specification that it speaks.
    pub mcp_revision: Option<String>,
    /// When it was last checked.
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub last_health_check: Option<Time>,
    /// The number of consecutive failed health checks.
    #[schemars(transform = number::plain_integer)]
    pub consecutive_failures: Option<i64>,
    /// The state of its circuit breaker.
    pub circuit_breaker_state: Option<CircuitBreakerState>,
    /// When circuitBreakerState last changed.
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub circuit_last_changed: Option<Time>,
    /// The number of its tools that clients see.
    pub tool_count: Option<i32>,
    /// Its tools that clients see, by their names there. At most 200 are listed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = list::atomic)]
    pub tools: Vec<OfferedTool>,
    /// Its tools that clients do not see, because another tool has the name. At most 200 are listed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = list::atomic)]
    pub hidden_tools: Vec<String>,
}

/// A tool of a backend, as clients see it.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OfferedTool {
    /// The name that clients use. Long names are truncated.
    pub name: String,
    /// The name at the backend, if it is another one.
    pub original_name: Option<String>,
}
