//! Annotations, and finalizers.
//!
//! They come in two domains: `toolhive.stacklok.dev` is the API group, `toolhive.stacklok.io` is what the older of
//! them use. Users and dashboards know each by its full name.

/// On a ConfigMap: the [checksum](crate::checksum) of its content.
pub const CONTENT_CHECKSUM: &str = "toolhive.stacklok.dev/content-checksum";
/// On a pod template: the checksum of the configuration file that the pods mount, so that a new file rolls them.
pub const RUNCONFIG_CHECKSUM: &str = "toolhive.stacklok.dev/runconfig-checksum";
/// On the pod templates of a proxy and of its StatefulSet: the generation of the MCPServer that they were made from.
///
/// A proxy does not apply a StatefulSet that has a greater generation than its own.
pub const MCPSERVER_GENERATION: &str = "toolhive.stacklok.dev/mcpserver-generation";

/// On the pod template of a registry: a hash of the MCPRegistry's spec, so that a new one rolls the pods.
pub const CONFIG_HASH: &str = "toolhive.stacklok.dev/config-hash";

/// On a Deployment: a hash of the user's pod template patch.
pub const POD_TEMPLATE_SPEC_HASH: &str = "toolhive.stacklok.io/podtemplatespec-hash";
/// On a Deployment: a hash of the secrets that images are pulled with.
pub const IMAGE_PULL_SECRETS_HASH: &str = "toolhive.stacklok.io/imagepullsecrets-hash";
/// On a Deployment: a hash of the volumes and mounts that the operator manages.
pub const POD_VOLUMES_HASH: &str = "toolhive.stacklok.io/podvolumes-hash";

/// On a Secret: what it is for.
pub const PURPOSE: &str = "toolhive.stacklok.dev/purpose";

/// On an MCPServer: when a user requested a restart (RFC 3339). On a proxy's pod template: when it was restarted.
pub const RESTARTED_AT: &str = "mcpserver.toolhive.stacklok.dev/restarted-at";
/// On an MCPServer: how to restart, [`ROLLING`] or [`IMMEDIATE`].
pub const RESTART_STRATEGY: &str = "mcpserver.toolhive.stacklok.dev/restart-strategy";
/// On an MCPServer: the value of [`RESTARTED_AT`] that the operator has processed.
pub const LAST_PROCESSED_RESTART: &str = "mcpserver.toolhive.stacklok.dev/last-processed-restart";
/// A restart strategy: a rolling update. Unknown values mean the same.
pub const ROLLING: &str = "rolling";
/// A restart strategy: the pods are deleted at once.
pub const IMMEDIATE: &str = "immediate";

/// On an object with pods: `true` lets the operator replace pods that another operator created.
pub const ALLOW_ROLLOUT: &str = "skep.dev/allow-rollout";

/// On an object that nobody controls and whose name a child of ours has: `true` hands it over.
pub const ADOPT: &str = "skep.dev/adopt";

/// On a pod template: when `kubectl rollout restart` was called. It belongs to the user and must survive.
pub const KUBECTL_RESTARTED_AT: &str = "kubectl.kubernetes.io/restartedAt";

/// The finalizer on an MCPServer, which holds it until the objects of its proxy are deleted.
pub const MCPSERVER_FINALIZER: &str = "mcpserver.toolhive.stacklok.dev/finalizer";
/// A finalizer that ToolHive sets on an EmbeddingServer. See [`GROUP_FINALIZER`].
pub const EMBEDDING_SERVER_FINALIZER: &str = "embeddingserver.toolhive.stacklok.dev/finalizer";
/// A finalizer that ToolHive sets on an MCPRegistry. See [`GROUP_FINALIZER`].
pub const REGISTRY_FINALIZER: &str = "mcpregistry.toolhive.stacklok.dev/finalizer";
/// A finalizer that ToolHive sets on an MCPGroup. skep needs none, and removes it when a group is deleted.
pub const GROUP_FINALIZER: &str = "toolhive.stacklok.dev/mcpgroup-finalizer";
