//! Short names for the kinds of the API, as the operator watches them.

use skep_api::kinds::*;
use skep_operator::resources::Custom;

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
