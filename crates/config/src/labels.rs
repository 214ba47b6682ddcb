//! Labels, and the values of those that have one value.

/// The workload that a pod belongs to: the kind in lower case on proxies, the name of the server on its own pods.
pub const APP: &str = "app";
/// The kind of workload, in lower case.
pub const APP_NAME: &str = "app.kubernetes.io/name";
/// The name of the workload.
pub const APP_INSTANCE: &str = "app.kubernetes.io/instance";
/// What part of the workload an object is.
pub const APP_COMPONENT: &str = "app.kubernetes.io/component";
/// The program that manages the object, always [`OPERATOR`].
pub const APP_MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// The [`APP_COMPONENT`] of a Secret for sessions.
pub const SESSION_SECURITY: &str = "session-security";

/// Marks managed objects: always [`TRUE`].
pub const TOOLHIVE: &str = "toolhive";
/// The name of the server.
pub const NAME: &str = "toolhive-name";
/// The name of the server, before any suffix.
pub const BASE_NAME: &str = "toolhive-basename";
/// The transport of the server.
pub const TRANSPORT: &str = "toolhive-transport";
/// The port that the proxy listens on.
pub const PORT: &str = "toolhive-port";
/// The value of [`TOOLHIVE`].
pub const TRUE: &str = "true";

/// On a ConfigMap: its content, [`RUN_CONFIG`] or [`VMCP_CONFIG`].
pub const COMPONENT: &str = "toolhive.stacklok.io/component";
/// On a ConfigMap: the MCPServer that it configures.
pub const MCP_SERVER: &str = "toolhive.stacklok.io/mcp-server";
/// On a ConfigMap: the MCPRemoteProxy that it configures.
pub const MCP_REMOTE_PROXY: &str = "toolhive.stacklok.io/mcp-remote-proxy";
/// On a ConfigMap: the VirtualMCPServer that it configures.
pub const VIRTUAL_MCP_SERVER: &str = "toolhive.stacklok.io/virtual-mcp-server";
/// On the pods of an MCPRegistry: its name.
pub const REGISTRY_NAME: &str = "toolhive.stacklok.io/registry-name";
/// On a ConfigMap: the program that writes it, always [`OPERATOR`].
pub const MANAGED_BY: &str = "toolhive.stacklok.io/managed-by";
/// On a ConfigMap of authorization policies: their source, always [`INLINE`].
pub const AUTHZ: &str = "toolhive.stacklok.io/authz";
/// The [`COMPONENT`] that is a RunConfig file.
pub const RUN_CONFIG: &str = "run-config";
/// The [`COMPONENT`] that is the configuration of a VirtualMCPServer.
pub const VMCP_CONFIG: &str = "vmcp-config";
/// The value of [`MANAGED_BY`].
pub const OPERATOR: &str = "toolhive-operator";
/// The value of [`AUTHZ`]: the policies are in the custom resource itself.
pub const INLINE: &str = "inline";
