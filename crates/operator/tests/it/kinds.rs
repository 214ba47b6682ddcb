//! The kinds of the API as the operator watches them, and short names for those that tests name.

use skep_api::kinds::*;
use skep_converge::Kind;
use skep_operator::{reconcile::Controller, resources::Custom};
use skep_world::Watched;

/// Every kind, sorted by name.
pub(crate) fn all_kinds() -> Vec<Kind> {
    macro_rules! kinds {
        ($($kind:ident),+) => { vec![$(Custom::<$kind>::kind()),+] };
    }
    skep_api::for_each_kind!(kinds)
}

/// Every child that an object of this kind and name may have.
pub(crate) fn names_of_children(kind: Kind, name: &str) -> Vec<(Kind, String)> {
    macro_rules! names {
        ($($of:ident),+) => {
            $(if kind.kind == stringify!($of) {
                return <$of as Controller>::names(name);
            })+
        };
    }
    skep_api::for_each_kind!(names);
    Vec::new()
}

pub(crate) type AuthzConfigs = Custom<MCPAuthzConfig>;
pub(crate) type CompositeTools = Custom<VirtualMCPCompositeToolDefinition>;
pub(crate) type EmbeddingServers = Custom<EmbeddingServer>;
pub(crate) type Entries = Custom<MCPServerEntry>;
pub(crate) type ExternalAuthConfigs = Custom<MCPExternalAuthConfig>;
pub(crate) type Groups = Custom<MCPGroup>;
pub(crate) type OidcConfigs = Custom<MCPOIDCConfig>;
pub(crate) type Registries = Custom<MCPRegistry>;
pub(crate) type RemoteProxies = Custom<MCPRemoteProxy>;
pub(crate) type Servers = Custom<MCPServer>;
pub(crate) type TelemetryConfigs = Custom<MCPTelemetryConfig>;
pub(crate) type ToolConfigs = Custom<MCPToolConfig>;
pub(crate) type VirtualServers = Custom<VirtualMCPServer>;
pub(crate) type WebhookConfigs = Custom<MCPWebhookConfig>;
