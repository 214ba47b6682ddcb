//! The fields that the specs of MCPServer and MCPRemoteProxy share.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use skep_api::{
    authz::AuthzConfig,
    kinds::{MCPRemoteProxy, MCPServer},
    refs::{
        AuthServerRef, AuthzConfigRef, ExternalAuthConfigRef, GroupRef, OidcConfigRef, TelemetryConfigRef,
        ToolConfigRef,
    },
    workload::{
        Audit, MetadataOverrides, ProxyDeploymentOverrides, ProxyOverrides, SessionAffinity, SessionStorage,
    },
};

/// A kind with a proxy in front of one server.
pub(crate) trait HasProxy: Send + Sync {
    fn metadata(&self) -> &ObjectMeta;
    fn proxy_spec(&self) -> ProxySpec<'_>;
}

/// The part of a spec that configures the proxy.
pub(crate) struct ProxySpec<'a> {
    pub(crate) audit: Option<&'a Audit>,
    pub(crate) auth_server_ref: Option<&'a AuthServerRef>,
    pub(crate) authz_config: Option<&'a AuthzConfig>,
    pub(crate) authz_config_ref: Option<&'a AuthzConfigRef>,
    pub(crate) endpoint_prefix: Option<&'a String>,
    pub(crate) external_auth_config_ref: Option<&'a ExternalAuthConfigRef>,
    pub(crate) group_ref: Option<&'a GroupRef>,
    pub(crate) oidc_config_ref: Option<&'a OidcConfigRef>,
    pub(crate) port: i32,
    pub(crate) resource_overrides: Option<&'a ProxyOverrides>,
    pub(crate) session_affinity: SessionAffinity,
    pub(crate) session_storage: Option<&'a SessionStorage>,
    pub(crate) telemetry_config_ref: Option<&'a TelemetryConfigRef>,
    pub(crate) tool_config_ref: Option<&'a ToolConfigRef>,
    pub(crate) trust_proxy_headers: bool,
}

impl<'a> ProxySpec<'a> {
    pub(crate) fn deployment(&self) -> Option<&'a ProxyDeploymentOverrides> {
        self.resource_overrides?.proxy_deployment.as_ref()
    }

    pub(crate) fn service(&self) -> Option<&'a MetadataOverrides> {
        self.resource_overrides?.proxy_service.as_ref()
    }
}

macro_rules! has_proxy {
    ($($kind:ty),+) => { $(
        impl HasProxy for $kind {
            fn metadata(&self) -> &ObjectMeta {
                &self.metadata
            }

            fn proxy_spec(&self) -> ProxySpec<'_> {
                let spec = &self.spec;
                ProxySpec {
                    audit: spec.audit.as_ref(),
                    auth_server_ref: spec.auth_server_ref.as_ref(),
                    authz_config: spec.authz_config.as_ref(),
                    authz_config_ref: spec.authz_config_ref.as_ref(),
                    endpoint_prefix: spec.endpoint_prefix.as_ref(),
                    external_auth_config_ref: spec.external_auth_config_ref.as_ref(),
                    group_ref: spec.group_ref.as_ref(),
                    oidc_config_ref: spec.oidc_config_ref.as_ref(),
                    port: spec.proxy_port(),
                    resource_overrides: spec.resource_overrides.as_ref(),
                    session_affinity: spec.session_affinity.unwrap_or_default(),
                    session_storage: spec.session_storage.as_ref(),
                    telemetry_config_ref: spec.telemetry_config_ref.as_ref(),
                    tool_config_ref: spec.tool_config_ref.as_ref(),
                    trust_proxy_headers: spec.trust_proxy_headers.unwrap_or_default(),
                }
            }
        }
    )+ };
}

has_proxy!(MCPServer, MCPRemoteProxy);
