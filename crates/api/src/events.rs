//! The events that controllers publish, in addition to those about a condition, which have the condition's reason.

/// Whether an event needs attention.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// It is informational.
    Normal,
    /// It needs attention.
    Warning,
}

/// An event as the documentation describes it.
#[derive(Debug)]
pub struct EventEntry {
    /// The reason.
    pub reason: &'static str,
    /// The kinds that it is about, as declared. `kinds::kinds_of_event` has all of them.
    pub kinds: &'static [&'static str],
    /// What it means.
    pub meaning: &'static str,
}

macro_rules! events {
    ($( $reason:ident $severity:ident $action:literal [$($kind:ident),+] $meaning:literal; )+) => {
        /// Why an event is published.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum EventReason {
            $( #[doc = $meaning] $reason, )+
        }

        impl EventReason {
            /// The reason, in one word.
            pub const fn as_str(self) -> &'static str {
                match self { $( Self::$reason => stringify!($reason), )+ }
            }

            /// The action, in one word.
            pub const fn action(self) -> &'static str {
                match self { $( Self::$reason => $action, )+ }
            }

            /// Whether it needs attention.
            pub const fn severity(self) -> Severity {
                match self { $( Self::$reason => Severity::$severity, )+ }
            }
        }

        /// All of them, in the order of the documentation.
        pub const EVENTS: &[EventEntry] = &[ $(
            EventEntry { reason: stringify!($reason), kinds: &[$(stringify!($kind)),+], meaning: $meaning },
        )+ ];
    };
}

events! {
    ProxyUpdated Normal "UpdateDeployment" [MCPServer, MCPRemoteProxy] "the proxy's pods are replaced; the message states why";
    DeploymentUpdated Normal "UpdateDeployment" [VirtualMCPServer, MCPRegistry] "the pods are replaced; the message states why";
    StatefulSetUpdated Normal "UpdateStatefulSet" [EmbeddingServer] "the pods may be replaced; the message states why";
    NotApplied Warning "Reconcile" [MCPServer, MCPRemoteProxy, VirtualMCPServer, EmbeddingServer, MCPRegistry]
        "the spec cannot be applied; the message states why";
    Contended Warning "Reconcile"
        [MCPServer, MCPRemoteProxy, VirtualMCPServer, EmbeddingServer, MCPRegistry, MCPServerEntry, MCPGroup,
        VirtualMCPCompositeToolDefinition, AnyConfig]
        "another writer changes a field back each time that it is restored; the message names both";
    ReadFailed Warning "Reconcile"
        [MCPServer, MCPRemoteProxy, VirtualMCPServer, EmbeddingServer, MCPRegistry, MCPServerEntry, MCPGroup,
        VirtualMCPCompositeToolDefinition, AnyConfig]
        "something that the object refers to cannot be read, so the object is not reconciled until a retry succeeds";
    StatusNotWritten Warning "Reconcile"
        [MCPServer, MCPRemoteProxy, VirtualMCPServer, EmbeddingServer, MCPRegistry, MCPServerEntry, MCPGroup,
        VirtualMCPCompositeToolDefinition, AnyConfig]
        "the API server rejects the status, so the one that is shown is old; the message states why";
    ValidationFailed Warning "ValidateSpec" [EmbeddingServer, MCPRegistry] "the spec is invalid; the message names the field";
    ConfigInvalid Warning "Validate"
        [AnyConfig, MCPServerEntry]
        "the spec has become invalid";
    ConfigValid Normal "Validate"
        [AnyConfig]
        "the spec is valid again";
    DeletionBlocked Warning "Delete"
        [AnyConfig]
        "it is being deleted, and workloads still refer to it";
    WorkflowInvalid Warning "Validate" [VirtualMCPCompositeToolDefinition] "the workflow has become invalid";
    WorkflowValid Normal "Validate" [VirtualMCPCompositeToolDefinition] "the workflow is valid again";
    EmbeddingServerRefNotFound Warning "ValidateEmbeddingServerRef" [VirtualMCPServer] "the EmbeddingServer does not exist";
    SecretValidationFailed Warning "ValidateSecrets" [VirtualMCPServer]
        "a Secret that the authentication of clients needs does not exist";
    DeploymentCreationFailed Warning "CreateDeployment" [VirtualMCPServer] "the API server rejects the Deployment";
    DeploymentUpdateFailed Warning "UpdateDeployment" [VirtualMCPServer] "the API server rejects a change of the Deployment";
    ServiceCreationFailed Warning "CreateService" [VirtualMCPServer] "the API server rejects the Service";
    HMACSecretCreated Normal "CreateHMACSecret" [VirtualMCPServer] "the Secret that binds sessions to their owners was created";
    HMACSecretCreationFailed Warning "CreateHMACSecret" [VirtualMCPServer] "that Secret cannot be written";
    HMACSecretGenerationFailed Warning "GenerateHMACSecret" [VirtualMCPServer] "the system has no randomness for that Secret";
    AuthzPrimaryUpstreamProviderDeprecated Warning "ResolvePrimaryUpstreamProvider" [VirtualMCPServer]
        "the field has moved to `authServerConfig.primaryUpstreamProvider`";
    EmbeddingServiceOverridden Warning "ResolveEmbeddingService" [VirtualMCPServer]
        "`config.optimizer.embeddingService` has no effect together with `embeddingServerRef`";
    MCPRegistryDeprecated Warning "Reconcile" [MCPRegistry] "the kind is deprecated: use the registry server's own chart";
    StorageVersionMigrationSucceeded Normal "Migrate" [CustomResourceDefinition] "all stored objects have the storage version";
    StorageVersionMigrationFailed Warning "Migrate" [CustomResourceDefinition] "some stored objects have another version; the message states why";
}
