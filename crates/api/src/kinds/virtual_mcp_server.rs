//! VirtualMCPServer: one MCP server that serves the tools of a whole group.

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

/// A VirtualMCPServer makes one MCP server of all members of an MCPGroup. Clients connect to it alone: it shows them
/// the tools, resources and prompts of all members, passes each call on to the member that has the tool, and
/// authenticates to each member in its own way. The address to give to MCP clients is in status.url.
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
        "message": "config.rateLimiting needs sessionStorage with provider redis, where the counters are kept",
    },
    {
        "rule": "!(has(self.config) && has(self.config.rateLimiting) && has(self.config.rateLimiting.perUser)) || (has(self.incomingAuth) && self.incomingAuth.type == 'oidc')",
        "message": "config.rateLimiting.perUser needs callers to be known: set incomingAuth.type to oidc",
    },
    {
        "rule": "!has(self.config) || !has(self.config.rateLimiting) || !has(self.config.rateLimiting.tools) || self.config.rateLimiting.tools.all(t, !has(t.perUser)) || (has(self.incomingAuth) && self.incomingAuth.type == 'oidc')",
        "message": "config.rateLimiting.tools[].perUser needs callers to be known: set incomingAuth.type to oidc",
    },
    {
        "rule": "!(has(self.embeddingServerRef) && has(self.config) && has(self.config.optimizer) && has(self.config.optimizer.embeddingProvider) && self.config.optimizer.embeddingProvider == 'openai')",
        "message": "embeddingServerRef names a server of type tei: leave it out, or set config.optimizer.embeddingProvider to tei",
    },
]))]
pub struct VirtualMCPServerSpec {
    /// The MCPGroup whose members are served. They may come and go while the server runs.
    pub group_ref: GroupRef,
    /// How clients are authenticated, and what they may do.
    pub incoming_auth: IncomingAuth,
    /// How the server authenticates to the members of the group. Without it, to each member as the
    /// externalAuthConfigRef of its own object says.
    pub outgoing_auth: Option<OutgoingAuth>,
    /// Headers of a client's request that are passed on to the members, by name. Those that belong to one connection,
    /// say where it came from, or carry credentials, such as Host, X-Forwarded-For, Authorization and Cookie, are
    /// refused.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = list::atomic)]
    pub passthrough_headers: Vec<String>,
    /// Everything about the serving itself: which tools are shown and under what names, tools made of other tools,
    /// health checks, rate limits, the search for tools and the audit log.
    pub config: Option<vmcp::Config>,
    /// An MCPTelemetryConfig that says where traces and metrics go.
    pub telemetry_config_ref: Option<TelemetryConfigRef>,
    /// An EmbeddingServer for the search of config.optimizer, which it turns on.
    pub embedding_server_ref: Option<EmbeddingServerRef>,
    /// Makes the server an OAuth authorization server as well, which logs users in at the identity providers behind
    /// it. It needs incomingAuth of type oidc, with this server's issuer.
    pub auth_server_config: Option<EmbeddedAuthServer>,
    /// How the server's Service is published.
    #[schemars(extend("default" = ServiceType::default()))]
    pub service_type: Option<ServiceType>,
    /// Whether a client's requests keep going to the same pod.
    #[schemars(extend("default" = SessionAffinity::default()))]
    pub session_affinity: Option<SessionAffinity>,
    /// How many pods to run. Leave it out to let an autoscaler or kubectl scale decide.
    #[schemars(range(min = 0))]
    pub replicas: Option<i32>,
    /// Where sessions are kept. Needed for more than one replica and for config.rateLimiting.
    pub session_storage: Option<SessionStorage>,
    /// An existing ServiceAccount for the pods. Without it, one is made for this server alone, with just the
    /// permissions that it needs; one of your own must have them as well.
    pub service_account: Option<String>,
    /// Secrets with which the image is pulled. The operator's defaults are added.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = list::atomic)]
    pub image_pull_secrets: Vec<LocalObjectReference>,
    /// A patch for the pods, in the format of a pod template. Name the server's container vmcp to change it.
    pub pod_template_spec: Option<RawObject>,
}

text_enum! {
    /// How clients are authenticated.
    pub enum IncomingAuthType {
        /// They are not: every request is accepted, as one anonymous user.
        #[default]
        Anonymous = "anonymous",
        /// By their tokens, as oidcConfigRef says.
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
    /// Whose tokens are accepted. Needed with type oidc.
    pub oidc_config_ref: Option<OidcConfigRef>,
    /// Policies that decide which requests are let through. Use authzConfigRef to share them between servers.
    pub authz_config: Option<AuthzConfig>,
    /// An MCPAuthzConfig, of type cedarv1, whose policies decide which requests are let through.
    pub authz_config_ref: Option<AuthzConfigRef>,
}

text_enum! {
    /// Where the ways to authenticate to the members of a group come from.
    pub enum OutgoingAuthSource {
        /// From the members' own objects, which the running server watches: it follows them as they change.
        #[default]
        Discovered = "discovered",
        /// From the operator, which writes all members and their ways into the server's configuration. The server
        /// needs no access to Secrets, and restarts when a member changes.
        Inline = "inline",
    }
}

/// How the server authenticates to the members of the group.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OutgoingAuth {
    /// Where the ways to authenticate come from.
    #[schemars(extend("default" = OutgoingAuthSource::default()))]
    pub source: Option<OutgoingAuthSource>,
    /// The way for members that have no way of their own.
    pub default: Option<BackendAuth>,
    /// The ways for single members, by the member's name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub backends: BTreeMap<String, BackendAuth>,
}

text_enum! {
    /// Where a way to authenticate is described.
    pub enum BackendAuthType {
        /// In the member's own object.
        #[default]
        Discovered = "discovered",
        /// In the MCPExternalAuthConfig that externalAuthConfigRef names.
        ExternalAuthConfigRef = "externalAuthConfigRef",
    }
}

/// One way to authenticate to a member of the group.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BackendAuth {
    /// Where the way is described.
    #[serde(rename = "type")]
    pub type_: BackendAuthType,
    /// The MCPExternalAuthConfig that describes it. Needed with type externalAuthConfigRef.
    pub external_auth_config_ref: Option<ExternalAuthConfigRef>,
}

text_enum! {
    /// How a Service is published.
    pub enum ServiceType {
        /// Within the cluster.
        #[default]
        ClusterIp = "ClusterIP",
        /// On a port of every node.
        NodePort = "NodePort",
        /// Through a load balancer of the cloud.
        LoadBalancer = "LoadBalancer",
    }
}

text_enum! {
    /// Where a VirtualMCPServer is in its life.
    pub enum VirtualMCPServerPhase {
        /// Its pods are on their way, or something that it refers to is not ready.
        #[default]
        Pending = "Pending",
        /// It answers requests, and all backends can be reached.
        Ready = "Ready",
        /// It answers requests, but some backends cannot be reached: status.discoveredBackends says which.
        Degraded = "Degraded",
        /// It cannot run as it is: status.message and the conditions say why.
        Failed = "Failed",
    }
}

/// What is known of a VirtualMCPServer.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VirtualMCPServerStatus {
    /// The generation of the spec that this status is about.
    pub observed_generation: Option<i64>,
    /// Where the server is in its life, in one word.
    #[schemars(extend("default" = VirtualMCPServerPhase::default()))]
    pub phase: Option<VirtualMCPServerPhase>,
    /// Why the phase is what it is, in one sentence.
    pub message: Option<String>,
    /// The address of the server within the cluster: what to give to an MCP client.
    pub url: Option<String>,
    /// How many pods there are.
    pub replicas: Option<i32>,
    /// The labels of the pods, as a selector: how an autoscaler finds them.
    pub selector: Option<String>,
    /// How many backends requests can be passed on to.
    pub backend_count: Option<i32>,
    /// The backends, as the running server last saw them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = list::by_name)]
    pub discovered_backends: Vec<DiscoveredBackend>,
    /// The hash of the MCPAuthzConfig that is in use.
    pub authz_config_hash: Option<String>,
    /// The hash of the MCPOIDCConfig that is in use.
    pub oidc_config_hash: Option<String>,
    /// The hash of the MCPTelemetryConfig that is in use.
    pub telemetry_config_hash: Option<String>,
    /// The state of the server, aspect by aspect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions::schema")]
    pub conditions: Conditions,
}

text_enum! {
    /// Whether a backend that kept failing is left alone.
    pub enum CircuitBreakerState {
        /// It is not: all is as usual.
        #[default]
        Closed = "closed",
        /// It is left alone for now.
        Open = "open",
        /// It was left alone, and is being tried again.
        HalfOpen = "half-open",
    }
}

/// A backend, as the running server last saw it.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DiscoveredBackend {
    /// The name of the backend.
    pub name: String,
    /// The address that calls are passed on to.
    pub url: Option<String>,
    /// How it is: ready, degraded, unavailable, unauthenticated or unknown.
    pub status: Option<String>,
    /// Why its status is what it is, in one sentence.
    pub message: Option<String>,
    /// The MCPExternalAuthConfig that says how the server authenticates to it, by name.
    pub auth_config_ref: Option<String>,
    /// How the server authenticates to it, for example token_exchange.
    pub auth_type: Option<String>,
    /// The revision of the MCP specification that it speaks.
    pub mcp_revision: Option<String>,
    /// When it was last checked.
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub last_health_check: Option<Time>,
    /// How many checks in a row have failed.
    #[schemars(transform = number::plain_integer)]
    pub consecutive_failures: Option<i64>,
    /// Whether it is left alone because it kept failing.
    pub circuit_breaker_state: Option<CircuitBreakerState>,
    /// When circuitBreakerState last changed.
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub circuit_last_changed: Option<Time>,
}
