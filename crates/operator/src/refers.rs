//! Who refers to whom, by name and within a namespace: what "who uses me" is answered from.

use skep_api::{
    kinds::{
        EmbeddingServer, MCPAuthzConfig, MCPExternalAuthConfig, MCPGroup, MCPOIDCConfig, MCPRegistry,
        MCPRemoteProxy, MCPServer, MCPServerEntry, MCPTelemetryConfig, MCPToolConfig, MCPWebhookConfig,
        VirtualMCPCompositeToolDefinition, VirtualMCPServer,
    },
    refs::WorkloadReference,
};
use skep_converge::Kind;
use skep_world::{ReadError, Reader, Watched};

use crate::watched::{
    AuthzConfigs, CompositeTools, EmbeddingServers, Entries, ExternalAuthConfigs, Groups, OidcConfigs,
    RemoteProxies, Servers, TelemetryConfigs, ToolConfigs, VirtualServers, WebhookConfigs,
};

/// Every object that refers to another one by name.
pub trait Refers {
    /// The kinds and names that the object refers to.
    fn references(&self) -> Vec<(Kind, &str)> {
        Vec::new()
    }
}

/// The key by which those are found that refer to an object.
pub(crate) fn reference_key(kind: Kind, name: &str) -> String {
    format!("{}/{name}", kind.kind)
}

macro_rules! names {
    ($($kind:ty: $reference:expr),+ $(,)?) => {
        [$( $reference.as_ref().map(|reference| (<$kind>::KIND, reference.name.as_str())) ),+]
            .into_iter()
            .flatten()
            .collect()
    };
}

impl Refers for MCPServer {
    fn references(&self) -> Vec<(Kind, &str)> {
        let spec = &self.spec;
        names! {
            Groups: spec.group_ref,
            ToolConfigs: spec.tool_config_ref,
            TelemetryConfigs: spec.telemetry_config_ref,
            ExternalAuthConfigs: spec.external_auth_config_ref,
            ExternalAuthConfigs: spec.auth_server_ref,
            WebhookConfigs: spec.webhook_config_ref,
            OidcConfigs: spec.oidc_config_ref,
            AuthzConfigs: spec.authz_config_ref,
        }
    }
}

impl Refers for MCPRemoteProxy {
    fn references(&self) -> Vec<(Kind, &str)> {
        let spec = &self.spec;
        names! {
            Groups: spec.group_ref,
            ToolConfigs: spec.tool_config_ref,
            TelemetryConfigs: spec.telemetry_config_ref,
            ExternalAuthConfigs: spec.external_auth_config_ref,
            ExternalAuthConfigs: spec.auth_server_ref,
            OidcConfigs: spec.oidc_config_ref,
            AuthzConfigs: spec.authz_config_ref,
        }
    }
}

impl Refers for MCPServerEntry {
    fn references(&self) -> Vec<(Kind, &str)> {
        names! {
            Groups: Some(&self.spec.group_ref),
            ExternalAuthConfigs: self.spec.external_auth_config_ref,
        }
    }
}

impl Refers for VirtualMCPServer {
    fn references(&self) -> Vec<(Kind, &str)> {
        let spec = &self.spec;
        let mut all: Vec<_> = names! {
            Groups: Some(&spec.group_ref),
            TelemetryConfigs: spec.telemetry_config_ref,
            EmbeddingServers: spec.embedding_server_ref,
            OidcConfigs: spec.incoming_auth.oidc_config_ref,
            AuthzConfigs: spec.incoming_auth.authz_config_ref,
        };
        let ways =
            spec.outgoing_auth.iter().flat_map(|auth| auth.default.iter().chain(auth.backends.values()));
        let ways = ways.filter_map(|way| way.external_auth_config_ref.as_ref());
        all.extend(ways.map(|reference| (ExternalAuthConfigs::KIND, reference.name.as_str())));
        let config = spec.config.iter();
        let tools = config.clone().filter_map(|config| config.aggregation.as_ref());
        let tools = tools
            .flat_map(|aggregation| &aggregation.tools)
            .filter_map(|tools| tools.tool_config_ref.as_ref());
        all.extend(tools.map(|reference| (ToolConfigs::KIND, reference.name.as_str())));
        let composite = config.flat_map(|config| &config.composite_tool_refs);
        all.extend(composite.map(|reference| (CompositeTools::KIND, reference.name.as_str())));
        all
    }
}

impl Refers for EmbeddingServer {}
impl Refers for MCPAuthzConfig {}
impl Refers for MCPExternalAuthConfig {}
impl Refers for MCPGroup {}
impl Refers for MCPOIDCConfig {}
impl Refers for MCPRegistry {}
impl Refers for MCPTelemetryConfig {}
impl Refers for MCPToolConfig {}
impl Refers for MCPWebhookConfig {}
impl Refers for VirtualMCPCompositeToolDefinition {}

/// The workloads that refer to an object, sorted by kind and name. The reader is woken when one comes or goes.
pub(crate) fn referrers(reader: &mut Reader, kind: Kind, name: &str) -> Vec<WorkloadReference> {
    let key = reference_key(kind, name);
    let mut all = Vec::new();
    macro_rules! of {
        ($($kind:ty),+) => { $(
            let kind = <$kind>::KIND.kind;
            all.extend(reader.members::<$kind>(&key).into_iter().map(|name| WorkloadReference { kind: kind.into(), name }));
        )+ };
    }
    of!(Servers, RemoteProxies, Entries, VirtualServers);
    all.sort();
    all
}

/// Lists every kind that can refer to something anew.
pub(crate) async fn refresh_referrers(reader: &Reader) -> Result<(), ReadError> {
    reader.refresh::<Servers>().await?;
    reader.refresh::<RemoteProxies>().await?;
    reader.refresh::<Entries>().await?;
    reader.refresh::<VirtualServers>().await
}
