//! The kinds, one file each, and [`for_each_kind`](crate::for_each_kind), the one list of them: CRDs, watches, permissions,
//! controllers and `skep render` follow from it.

mod embedding_server;
mod mcp_authz_config;
mod mcp_external_auth_config;
mod mcp_group;
mod mcp_oidc_config;
mod mcp_registry;
mod mcp_remote_proxy;
mod mcp_server;
mod mcp_server_entry;
mod mcp_telemetry_config;
mod mcp_tool_config;
mod mcp_webhook_config;
mod virtual_mcp_composite_tool_definition;
mod virtual_mcp_server;

mod declared;

pub use declared::{config_kinds, kinds_of_event, kinds_of_reason};
pub use embedding_server::*;
pub use mcp_authz_config::*;
pub use mcp_external_auth_config::*;
pub use mcp_group::*;
pub use mcp_oidc_config::*;
pub use mcp_registry::*;
pub use mcp_remote_proxy::*;
pub use mcp_server::*;
pub use mcp_server_entry::*;
pub use mcp_telemetry_config::*;
pub use mcp_tool_config::*;
pub use mcp_webhook_config::*;
pub use virtual_mcp_composite_tool_definition::*;
pub use virtual_mcp_server::*;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::core::object::{HasSpec, HasStatus};
use serde::{Serialize, de::DeserializeOwned};

/// A kind of the API.
pub trait ApiKind:
    kube::Resource<DynamicType = ()>
    + HasSpec<Spec: Serialize + PartialEq>
    + HasStatus<Status: Serialize + DeserializeOwned + Clone + PartialEq + Send + Sync>
    + DeserializeOwned
    + Clone
    + PartialEq
    + Send
    + Sync
    + 'static
{
    /// The conditions in the object's status.
    fn conditions(&self) -> &[Condition];

    /// The generation that the object's status was computed for.
    fn observed_generation(&self) -> Option<i64>;
}

/// Calls a macro with every kind, sorted by name. This is the only list of them.
#[macro_export]
macro_rules! for_each_kind {
    ($callback:ident) => {
        $callback! {
            EmbeddingServer, MCPAuthzConfig, MCPExternalAuthConfig, MCPGroup, MCPOIDCConfig, MCPRegistry, MCPRemoteProxy,
            MCPServer, MCPServerEntry, MCPTelemetryConfig, MCPToolConfig, MCPWebhookConfig,
            VirtualMCPCompositeToolDefinition, VirtualMCPServer
        }
    };
}

macro_rules! api_kinds {
    ($($kind:ident),+) => { $(
        impl ApiKind for $kind {
            fn conditions(&self) -> &[Condition] {
                self.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default()
            }

            fn observed_generation(&self) -> Option<i64> {
                self.status.as_ref().and_then(|status| status.observed_generation)
            }
        }
    )+ };
}

for_each_kind!(api_kinds);
