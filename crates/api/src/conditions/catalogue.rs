//! Every condition that an object can have, with its reasons. docs/troubleshooting.md is generated from this.

use super::declare::{ConditionType, Reason, ReasonEntry, conditions};

conditions! {
    /// Whether the object serves requests. A VirtualMCPServer that cannot run has the reason of the condition that is
    /// not met.
    Ready ("Reconcile") {
        Ready met [MCPServer, EmbeddingServer, MCPRegistry] "it serves requests";
        DeploymentReady met [MCPRemoteProxy, VirtualMCPServer] "it serves requests";
        NotReady unmet [MCPServer, MCPRemoteProxy, MCPRegistry] "its pods are starting, or it cannot run"
            => "see the message";
        DeploymentNotReady unmet [MCPRemoteProxy, VirtualMCPServer] "no pod is ready, or it is scaled to zero"
            => "wait, or inspect the pods";
        DeploymentFailed unmet [VirtualMCPServer, MCPRegistry]
            "pods fail or cannot be created, or a child object cannot be written" => "see the message";
        NotApplied unmet [VirtualMCPServer]
            "a problem without its own condition, such as an MCPToolConfig or a group without members"
            => "see the message";
        BackendsDegraded unmet [VirtualMCPServer] "it serves requests, and some backends are unreachable (phase `Degraded`)"
            => "see `status.discoveredBackends`";
        BackendsUnavailable unmet [VirtualMCPServer] "no backend is reachable" => "see `status.discoveredBackends`";
        Pending unmet [EmbeddingServer] "its pods are starting" => "wait, or inspect the pods";
        Downloading unmet [EmbeddingServer] "its pod downloads the model, or waits for its image or volume"
            => "see the pod's log; if there is none, `kubectl describe pod NAME-0`";
        Failed unmet [EmbeddingServer] "it cannot run" => "see the message";
        ValidationFailed unmet [MCPRegistry] "the spec or podTemplateSpec is invalid" => "see the message: it names the field";
        ConfigMapFailed unmet [MCPRegistry] "the ConfigMap cannot be written" => "see the message: it is the API server's";
        RBACFailed unmet [MCPRegistry] "the ServiceAccount, Role or RoleBinding cannot be written"
            => "see the message: it is the API server's";
        ServiceFailed unmet [MCPRegistry] "the Service cannot be written" => "see the message: it is the API server's";
        WorkflowReady met [VirtualMCPCompositeToolDefinition] "the workflow can run";
        WorkflowNotReady unmet [VirtualMCPCompositeToolDefinition] "the workflow cannot run"
            => "see `status.validationErrors`";
    }

    /// Whether the server responds as an MCP server. Its proxy reports it: it initializes a session, and reads the lists.
    /// `Ready` needs it. A proxy that does not report leaves it out.
    MCPInitialized ("Inspect") {
        Initialized met [MCPServer, MCPRemoteProxy] "the server has responded; `status.server` has what it offers";
        Initializing unmet [MCPServer, MCPRemoteProxy] "the server has not responded yet" => "wait, or see its log";
        NoResponse unmet [MCPServer, MCPRemoteProxy] "the server cannot be reached, or does not respond in time"
            => "see the message, and the server's log";
        NotMCP unmet [MCPServer, MCPRemoteProxy] "what responds is not an MCP server, or not at this path"
            => "see the message; check `transport`, ports and `remoteUrl`";
        CredentialRequired unmet [MCPServer, MCPRemoteProxy]
            "the server wants the credentials of a caller before it lists anything, so it was not queried. `Ready` does not need it then"
            => "nothing: calls with credentials work";
    }

    /// Whether callers can be authenticated: their proxy has keys of the issuer. It reports it where callers need tokens.
    /// `Ready` needs it. An issuer that is unavailable later changes nothing, as long as its keys are valid.
    IssuerAvailable ("Inspect") {
        KeysFetched met [MCPServer, MCPRemoteProxy] "the proxy has fetched the keys of the issuer";
        IssuerUnavailable unmet [MCPServer, MCPRemoteProxy]
            "the keys of the issuer cannot be fetched, so no caller can be authenticated"
            => "see the message; check the issuer of the MCPOIDCConfig, and whether the pod can reach it";
    }

    /// Whether a change of the pods waits. The operator does not replace pods that another operator created, unless that is
    /// allowed (`SKEP_TAKEOVER_ROLLOUTS`).
    RolloutPending ("Reconcile") {
        WaitsForRollout met [MCPServer, MCPRemoteProxy, VirtualMCPServer, EmbeddingServer, MCPRegistry]
            "the pods of another operator differ from the desired ones, and keep running"
            => "change the spec, or annotate the object with `skep.dev/allow-rollout=true`";
        SpecChanged unmet [MCPServer, MCPRemoteProxy, VirtualMCPServer, EmbeddingServer, MCPRegistry]
            "the spec has changed, and cannot be applied yet; the pods are then replaced" => "see the other conditions";
    }

    /// Whether another writer changes fields of the operator back, again and again.
    Contended ("Reconcile") {
        ChangedBack met
            [MCPServer, MCPRemoteProxy, VirtualMCPServer, EmbeddingServer, MCPRegistry, MCPServerEntry, MCPGroup,
            VirtualMCPCompositeToolDefinition, AnyConfig]
            "another writer changes a field back each time that the operator restores it. The operator restores it less and less often"
            => "stop the writer that the message names, or set the field in the object's spec";
    }

    /// Whether the object is valid by itself.
    Valid ("ValidateSpec") {
        ConfigValid met [MCPAuthzConfig, MCPOIDCConfig, MCPServerEntry]
            "the spec is valid";
        ConfigInvalid unmet [MCPAuthzConfig, MCPOIDCConfig, MCPServerEntry]
            "the spec is invalid. Workloads that refer to it keep running with the last valid configuration"
            => "see the message: it names the field";
        ValidationSucceeded met [AnyConfig, VirtualMCPServer] "the spec is valid";
        ValidationFailed unmet [AnyConfig, MCPExternalAuthConfig, VirtualMCPServer]
            "the spec is invalid. Workloads that refer to it keep running with the last valid configuration"
            => "see the message: it names the field";
    }

    /// Whether clients see all composite tools. The running pods report it, if there are any.
    CompositeToolsOffered ("OfferTools") {
        AllCompositeToolsOffered met [VirtualMCPServer] "clients see all composite tools";
        CompositeToolsNotOffered unmet [VirtualMCPServer]
            "clients do not see a composite tool: its name is that of another tool, no backend has the tool of a step, or its annotations promise more than its steps do"
            => "see the message: it names the tool and the reason";
    }

    /// Whether a deletion waits for the workloads that refer to the object.
    DeletionBlocked ("Delete") {
        ReferencedByWorkloads met [AnyConfig] "it is being deleted, and workloads still refer to it"
            => "remove the references that the message lists; the deletion then completes";
    }

    /// Whether the Secrets and ConfigMaps that a configuration refers to exist.
    ReferencesResolved ("ResolveReferences") {
        NotFound unmet [AnyConfig] "a Secret, a ConfigMap or a key of it does not exist" => "create it: the message lists all that is missing";
    }

    /// Whether there are policies that never apply.
    PolicyWarning ("ValidatePolicies") {
        PolicyWithoutEffect met [MCPAuthzConfig, MCPServer, MCPRemoteProxy, VirtualMCPServer]
            "a policy is valid but never applies, for example because its action or type of principal does not exist"
            => "fix or remove the policies that the message names";
    }

    /// Whether two tools of a server would have the same name.
    ToolNameWarning ("ValidateSpec") {
        DuplicateToolName met [MCPToolConfig, VirtualMCPServer]
            "overrides give two tools of a server the same name, and only one of them is offered"
            => "give each tool another name: the message names the overrides";
    }

    /// Whether the authorization server invents user names, because an upstream provider does not identify its users.
    IdentitySynthesized ("ValidateSpec") {
        AllUpstreamsHaveUserInfo unmet [MCPExternalAuthConfig, VirtualMCPServer] "every upstream provider identifies its users";
        OAuth2UpstreamWithoutUserInfo met [MCPExternalAuthConfig, VirtualMCPServer]
            "an upstream provider does not identify its users: they get generated names in policies and in the audit log"
            => "set `oauth2Config.userInfo` or `identityFromToken`";
    }

    /// Whether the spec of an MCPRemoteProxy is valid.
    ConfigurationValid ("ValidateSpec") {
        ConfigurationValid met [MCPRemoteProxy] "the spec is valid";
        RemoteURLInvalid unmet [MCPRemoteProxy]
            "`remoteUrl` is not a URL, is private, or addresses the node, the cluster's API or a metadata service"
            => "use another URL; `allowPrivateEndpoint` allows private ones";
        ExternalAuthConfigFetchError unmet [MCPRemoteProxy] "the MCPExternalAuthConfig does not exist"
            => "create it, or correct the name";
        AuthServerConflict unmet [MCPRemoteProxy]
            "`authServerRef` and `externalAuthConfigRef` both refer to an authorization server" => "keep one of them";
        AuthzPolicySyntaxInvalid unmet [MCPRemoteProxy] "a policy in the spec cannot be parsed"
            => "see the message: it quotes the place";
        AuthzConfigMapNotFound unmet [MCPRemoteProxy] "the ConfigMap with policies does not exist" => "create it";
        AuthzConfigMapInvalid unmet [MCPRemoteProxy] "the ConfigMap does not hold policies under this key" => "see the message";
        HeaderForwardInvalid unmet [MCPRemoteProxy]
            "a header that the proxy sets itself, a duplicate header, or a value with several lines"
            => "see the message: it names the header";
        HeaderSecretNotFound unmet [MCPRemoteProxy] "the Secret with the value of a header does not exist"
            => "create the Secret and the key";
    }

    /// Whether callers can be authenticated and authorized as specified. An MCPRemoteProxy has it only while it is
    /// False.
    AuthConfigured ("ValidateAuthentication") {
        AuthValid met [VirtualMCPServer] "callers are authenticated as specified";
        AuthInvalid unmet [VirtualMCPServer, MCPRemoteProxy] "a policy cannot be parsed, or a Secret does not exist"
            => "see the message";
        AuthzConfigMapNotFound unmet [VirtualMCPServer] "the ConfigMap with policies does not exist" => "create it";
        AuthzConfigMapInvalid unmet [VirtualMCPServer] "the ConfigMap does not hold policies under this key"
            => "see the message";
    }

    /// Whether podTemplateSpec is a pod template.
    PodTemplateValid ("ValidatePodTemplateSpec") {
        ValidPodTemplateSpec met [MCPServer, MCPRemoteProxy, EmbeddingServer, MCPRegistry] "podTemplateSpec is valid";
        InvalidPodTemplateSpec unmet [MCPServer, MCPRemoteProxy, EmbeddingServer, MCPRegistry]
            "a field of podTemplateSpec has the wrong type or name"
            => "see the message: it names the field; `kubectl explain pod.spec` describes them";
    }

    /// Whether podTemplateSpec of a VirtualMCPServer is a pod template.
    PodTemplateSpecValid ("ValidatePodTemplateSpec") {
        PodTemplateSpecValid met [VirtualMCPServer] "podTemplateSpec is valid";
        InvalidPodTemplateSpec unmet [VirtualMCPServer] "a field of podTemplateSpec has the wrong type or name"
            => "see the message: it names the field";
    }

    /// Whether the MCPGroup exists.
    GroupRefValidated ("ResolveReferences") {
        GroupRefIsValid met [MCPServer, MCPRemoteProxy, MCPServerEntry] "it is a member of the group";
        GroupRefValid met [VirtualMCPServer] "it serves the members of the group";
        GroupRefNotFound unmet [MCPServer, MCPRemoteProxy, MCPServerEntry, VirtualMCPServer]
            "the MCPGroup does not exist in this namespace. A server runs without it; a VirtualMCPServer does not"
            => "create it, or correct the name";
        GroupRefNotReady unmet [MCPServer, MCPRemoteProxy, MCPServerEntry, VirtualMCPServer]
            "the group's phase is `Failed`, which another operator wrote" => "see the group's status";
    }

    /// Whether the ConfigMap with the certificates of a private authority exists.
    CABundleRefValidated ("ResolveReferences") {
        CABundleRefValid met [MCPServer, MCPRemoteProxy, MCPServerEntry] "the certificates are available";
        CABundleRefNotConfigured met [MCPServerEntry] "no bundle is configured: the system's certificates are trusted";
        CABundleRefNotFound unmet [MCPServer, MCPRemoteProxy, MCPServerEntry] "the ConfigMap does not exist" => "create it";
        CABundleRefInvalid unmet [MCPServer, MCPRemoteProxy, MCPServerEntry] "the ConfigMap does not have this key" => "add it";
    }

    /// Whether the MCPToolConfig can be used. An MCPServer has only its phase and message.
    ToolConfigValidated ("ResolveReferences") {
        ToolConfigValid met [MCPRemoteProxy] "the MCPToolConfig is in use";
        ToolConfigNotFound unmet [MCPRemoteProxy] "the MCPToolConfig does not exist" => "create it, or correct the name";
        ToolConfigInvalid unmet [MCPRemoteProxy] "the MCPToolConfig is invalid" => "see its own conditions";
    }

    /// Whether the MCPTelemetryConfig can be used.
    TelemetryConfigRefValidated ("ResolveReferences") {
        TelemetryConfigRefValid met [MCPServer, MCPRemoteProxy, VirtualMCPServer] "the MCPTelemetryConfig is in use";
        TelemetryConfigRefNotFound unmet [MCPServer, MCPRemoteProxy, VirtualMCPServer] "the MCPTelemetryConfig does not exist"
            => "create it, or correct the name";
        TelemetryConfigRefInvalid unmet [MCPServer, MCPRemoteProxy, VirtualMCPServer] "the MCPTelemetryConfig is invalid"
            => "see its own conditions";
    }

    /// Whether the MCPOIDCConfig can be used.
    OIDCConfigRefValidated ("ResolveReferences") {
        OIDCConfigRefValid met [MCPServer, MCPRemoteProxy, VirtualMCPServer] "the MCPOIDCConfig is in use";
        OIDCConfigRefNotFound unmet [MCPServer, MCPRemoteProxy, VirtualMCPServer] "the MCPOIDCConfig does not exist"
            => "create it, or correct the name";
        OIDCConfigRefNotValid unmet [MCPServer, MCPRemoteProxy, VirtualMCPServer] "the MCPOIDCConfig is invalid"
            => "see its own conditions";
    }

    /// Whether the MCPAuthzConfig can be used.
    AuthzConfigRefValidated ("ResolveReferences") {
        AuthzConfigRefValid met [MCPServer, MCPRemoteProxy, VirtualMCPServer] "the MCPAuthzConfig is enforced";
        AuthzConfigRefNotFound unmet [MCPServer, MCPRemoteProxy, VirtualMCPServer] "the MCPAuthzConfig does not exist"
            => "create it, or correct the name";
        AuthzConfigRefNotValid unmet [MCPServer, MCPRemoteProxy, VirtualMCPServer] "the MCPAuthzConfig is invalid"
            => "see its own conditions";
    }

    /// Whether the MCPExternalAuthConfig can be used. An MCPServer has it only while it is False.
    ExternalAuthConfigValidated ("ResolveReferences") {
        ExternalAuthConfigValid met [MCPRemoteProxy] "the MCPExternalAuthConfig is in use";
        AuthConfigValid met [MCPServerEntry] "the MCPExternalAuthConfig is in use";
        AuthConfigNotConfigured met [MCPServerEntry] "requests are sent without authentication";
        ExternalAuthConfigNotFound unmet [MCPRemoteProxy] "the MCPExternalAuthConfig does not exist"
            => "create it, or correct the name";
        AuthConfigNotFound unmet [MCPServerEntry] "the MCPExternalAuthConfig does not exist" => "create it, or correct the name";
        InvalidExternalAuthConfig unmet [MCPServer, MCPRemoteProxy] "the MCPExternalAuthConfig is invalid"
            => "see its own conditions";
        AuthConfigInvalid unmet [MCPServerEntry] "the MCPExternalAuthConfig is invalid" => "see its own conditions";
        InvalidConfig unmet [MCPServer, MCPRemoteProxy] "its authorization server does not fit the rest of the spec"
            => "see the message";
        MultiUpstreamNotSupported unmet [MCPServer, MCPRemoteProxy]
            "it has several upstream providers, and a proxy for one server supports one"
            => "keep one, or use a VirtualMCPServer";
    }

    /// Whether the embedded authorization server can run.
    AuthServerRefValidated ("ResolveReferences") {
        AuthServerRefValid met [MCPServer, MCPRemoteProxy] "the authorization server is in use";
        AuthServerRefNotFound unmet [MCPServer, MCPRemoteProxy] "the MCPExternalAuthConfig does not exist"
            => "create it, or correct the name";
        AuthServerRefInvalidType unmet [MCPServer, MCPRemoteProxy]
            "the MCPExternalAuthConfig is not of type `embeddedAuthServer`" => "refer to one of that type";
        AuthServerRefInvalidConfig unmet [MCPServer, MCPRemoteProxy] "it is invalid, or does not fit the rest of the spec"
            => "see the message";
        MultiUpstreamNotSupported unmet [MCPServer, MCPRemoteProxy] "it has several upstream providers"
            => "keep one, or use a VirtualMCPServer";
    }

    /// Whether a field without effect is set.
    AuthzPrimaryUpstreamProviderIgnored ("ValidateSpec") {
        PrimaryUpstreamProviderIgnored met [MCPServer, MCPRemoteProxy]
            "`authzConfig.inline.primaryUpstreamProvider` has no effect here" => "remove it";
    }

    /// Whether replicas lack a shared session store.
    SessionStorageWarning ("ValidateSpec") {
        SessionStorageWarningNotApplicable unmet [MCPServer, MCPRemoteProxy, VirtualMCPServer]
            "there is one replica, which has all sessions";
        SessionStorageConfigured unmet [MCPServer, MCPRemoteProxy, VirtualMCPServer] "the replicas share sessions in Redis";
        SessionStorageMissingForReplicas met [MCPServer, MCPRemoteProxy, VirtualMCPServer]
            "several replicas do not share sessions: clients get 404 when a request reaches another replica"
            => "set `sessionStorage` with provider redis";
    }

    /// Whether replicas do not share the logins of their authorization server.
    AuthServerStorageWarning ("ValidateSpec") {
        AuthServerStorageMissingForReplicas met [MCPServer, MCPRemoteProxy, VirtualMCPServer]
            "several replicas do not share logins: users have to log in again when a request reaches another replica"
            => "set `storage` with type redis, `signingKeySecretRefs` and `hmacSecretRefs` of the authorization server";
    }

    /// Whether `replicas` is limited because the server is a single process.
    StdioReplicaCapped ("ValidateSpec") {
        StdioReplicaCapNotActive unmet [MCPServer] "`replicas` is applied as specified";
        StdioTransportCapAt1 met [MCPServer] "`replicas` is limited to 1: a stdio server is one process"
            => "remove `replicas`, or use an HTTP server";
    }

    /// Whether the rate limits can be enforced. A VirtualMCPServer has it only while it is False.
    RateLimitConfigValid ("ValidateSpec") {
        RateLimitConfigValid met [MCPServer] "the limits are enforced";
        RateLimitNotApplicable met [MCPServer] "no limits are set";
        RateLimitConfigInvalid unmet [MCPServer, VirtualMCPServer] "a limit is invalid" => "see the message: it names the field";
        PerUserRequiresAuth unmet [MCPServer] "`perUser` counts callers, and callers are not authenticated"
            => "set `oidcConfigRef`";
    }

    /// Whether `remoteUrl` can be called.
    RemoteURLValidated ("ValidateSpec") {
        RemoteURLValid met [MCPServerEntry] "`remoteUrl` is valid";
        RemoteURLInvalid unmet [MCPServerEntry]
            "`remoteUrl` is not a URL, is private, or addresses the node, the cluster's API or a metadata service"
            => "use another URL; `allowPrivateEndpoint` allows private ones";
    }

    /// Whether the headers can be sent.
    HeaderSecretRefsValidated ("ResolveReferences") {
        HeaderSecretsValid met [MCPServerEntry] "the values of all headers are available";
        HeaderSecretNotFound unmet [MCPServerEntry] "the Secret with the value of a header does not exist"
            => "create the Secret and the key";
        HeaderForwardInvalid unmet [MCPServerEntry]
            "a header that the proxy sets itself, a duplicate header, or a value with several lines"
            => "see the message: it names the header";
    }

    /// Whether the members of a group are listed.
    MCPServersChecked ("Reconcile") {
        ListMCPServersCheckSucceeded met [MCPGroup] "the status lists the members";
    }

    /// Whether the composite tools can be offered.
    CompositeToolRefsValidated ("ResolveReferences") {
        CompositeToolRefsValid met [VirtualMCPServer] "all composite tools can run, or there are none";
        CompositeToolRefNotFound unmet [VirtualMCPServer] "the definition does not exist" => "create it, or correct the name";
        CompositeToolRefInvalid unmet [VirtualMCPServer] "the definition is invalid, its tool has the name of another, or it needs what the server does not allow"
            => "see its status and the message; rename one, or set `config.allowRunAsWorkflow`";
    }

    /// Whether the EmbeddingServer serves requests.
    EmbeddingServerReady ("ValidateEmbeddingServerRef") {
        EmbeddingServerReady met [VirtualMCPServer] "it serves requests";
        EmbeddingServerNotReady unmet [VirtualMCPServer] "it is not ready" => "see its status";
        EmbeddingServerNotFound unmet [VirtualMCPServer] "it does not exist" => "create it, or correct the name";
    }

    /// Whether the embedded authorization server of a VirtualMCPServer can run.
    AuthServerConfigValidated ("ValidateSpec") {
        AuthServerConfigValid met [VirtualMCPServer] "the authorization server is valid";
        AuthServerConfigInvalid unmet [VirtualMCPServer] "it is invalid" => "see the message: it names the field";
        AuthzPrimaryProviderRequiresAuthServer unmet [VirtualMCPServer]
            "a provider is named, and there is no `authServerConfig`" => "set it, or remove the name";
        AuthzUpstreamUnknown unmet [VirtualMCPServer] "the provider is not one of `upstreamProviders`" => "correct the name";
    }

    /// Whether the upstream provider for policies was chosen by default.
    AuthzUpstreamSelectionWarning ("ValidateSpec") {
        AuthzUpstreamAutoSelected met [VirtualMCPServer] "policies evaluate tokens of the first of several providers"
            => "name one in `authServerConfig.primaryUpstreamProvider`";
    }

    /// How a VirtualMCPServer authenticates to backends without their own configuration.
    DefaultAuthConfig ("ResolveReferences") {
        ConversionSucceeded met [VirtualMCPServer] "the message names the method";
        ConversionFailed unmet [VirtualMCPServer] "something is missing, or the type is not supported" => "see the message";
        InvalidExternalAuthConfig unmet [VirtualMCPServer] "the MCPExternalAuthConfig is invalid" => "see its own conditions";
        AmbiguousSubjectProvider unmet [VirtualMCPServer] "`xaa` does not name one of several providers"
            => "set `xaa.subjectProviderName`";
    }

    /// How a VirtualMCPServer authenticates to a backend that `outgoingAuth.backends` names.
    BackendAuthConfig = "BackendAuthConfig-" ("ResolveReferences") {
        ConversionSucceeded met [VirtualMCPServer] "the message names the method";
        ConversionFailed unmet [VirtualMCPServer] "something is missing, or the type is not supported" => "see the message";
        InvalidExternalAuthConfig unmet [VirtualMCPServer] "the MCPExternalAuthConfig is invalid" => "see its own conditions";
        AmbiguousSubjectProvider unmet [VirtualMCPServer] "`xaa` does not name one of several providers"
            => "set `xaa.subjectProviderName`";
    }

    /// How a VirtualMCPServer authenticates to a member by the member's own `externalAuthConfigRef`. One that fails
    /// excludes that member, and no other.
    DiscoveredAuthConfig = "DiscoveredAuthConfig-" ("ResolveReferences") {
        ConversionSucceeded met [VirtualMCPServer] "the message names the method";
        ConversionFailed unmet [VirtualMCPServer] "something is missing, or the type is not supported" => "see the message";
        InvalidExternalAuthConfig unmet [VirtualMCPServer] "the MCPExternalAuthConfig is invalid" => "see its own conditions";
        AmbiguousSubjectProvider unmet [VirtualMCPServer] "`xaa` does not name one of several providers"
            => "set `xaa.subjectProviderName`";
    }

    /// Whether the volume is the one that the spec describes. An EmbeddingServer has it only while it is False.
    VolumeReady ("ValidateModelCache") {
        ModelCacheImmutable unmet [EmbeddingServer]
            "Kubernetes does not allow the claims of a StatefulSet to change; it keeps running with the old one"
            => "delete the StatefulSet and its claims; it is then recreated";
    }

    /// Whether the workflow is valid.
    WorkflowValidated ("Validate") {
        ValidationSuccess met [VirtualMCPCompositeToolDefinition] "the workflow is valid";
        ValidationFailed unmet [VirtualMCPCompositeToolDefinition] "a step lacks something, or refers to something that does not exist"
            => "see `status.validationErrors`";
        SchemaInvalid unmet [VirtualMCPCompositeToolDefinition] "`parameters` or a `schema` is not a JSON Schema"
            => "see `status.validationErrors`";
        TemplateInvalid unmet [VirtualMCPCompositeToolDefinition]
            "a template cannot be parsed, or refers to something that does not exist" => "see `status.validationErrors`";
        DependencyCycle unmet [VirtualMCPCompositeToolDefinition] "steps depend on each other" => "see `status.validationErrors`";
    }
}
