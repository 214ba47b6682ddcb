//! What the operator watches, and what it keeps of it.

use std::{collections::BTreeMap, sync::Arc};

use k8s_openapi::{
    api::{
        apps::v1::{Deployment, StatefulSet},
        core::v1::{ConfigMap, Pod, Secret, Service, ServiceAccount},
        rbac::v1::{Role, RoleBinding},
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::core::DynamicObject;
use serde::de::DeserializeOwned;
use serde_json::json;
use skep_api::{GROUP, kinds};
use skep_converge::{Kind, Observed};
use skep_world::{Builder, Readable, Watched, World};

use crate::{
    driver::Controller,
    facts::{
        ConfigFacts, DeploymentFacts, ManagedDeploymentFacts, PodFacts, ServerSetFacts, StatefulSetFacts,
    },
    kinds::{Visit, each},
    refers::{Refers, reference_key},
};

/// The field managers of this operator begin like this.
pub const MANAGER_PREFIX: &str = "skep-";

/// What selects the workloads that the operator makes and that have no proxy.
const MANAGED: &str = "app.kubernetes.io/managed-by=toolhive-operator";

/// A custom resource, typed if it can be read.
#[derive(Clone, Debug, PartialEq)]
pub struct Custom<K> {
    /// The object, or why it cannot be read. Its resourceVersion is left to the entry.
    pub object: Result<Arc<K>, String>,
    /// What its controller owns in it.
    pub observed: Observed,
}

/// A kind of custom resource.
pub trait CustomResource: Watched<Kept = Custom<Self::Object>> {
    /// The type of its objects.
    type Object: DeserializeOwned + PartialEq + Send + Sync + 'static;

    /// The metadata of an object.
    fn metadata(object: &Self::Object) -> &ObjectMeta;
}

macro_rules! custom_resources {
    ($( $(#[$meta:meta])* $name:ident: $object:ident, $version:literal, $plural:literal; )+) => { $(
        $(#[$meta])*
        pub struct $name;

        impl Watched for $name {
            type Kept = Custom<kinds::$object>;
            const KIND: Kind = Kind { group: GROUP, version: $version, kind: stringify!($object), plural: $plural };

            fn keep(object: &DynamicObject) -> Self::Kept {
                keep_custom(object)
            }

            fn index(kept: &Self::Kept) -> Vec<String> {
                let references = kept.object.iter().flat_map(|object| object.references());
                references.map(|(kind, name)| reference_key(kind, name)).collect()
            }
        }

        impl CustomResource for $name {
            type Object = kinds::$object;

            fn metadata(object: &kinds::$object) -> &ObjectMeta {
                &object.metadata
            }
        }
    )+ };
}

custom_resources! {
    /// MCPServers.
    Servers: MCPServer, "v1beta1", "mcpservers";
    /// MCPRemoteProxies.
    RemoteProxies: MCPRemoteProxy, "v1beta1", "mcpremoteproxies";
    /// MCPServerEntries.
    Entries: MCPServerEntry, "v1beta1", "mcpserverentries";
    /// VirtualMCPServers.
    VirtualServers: VirtualMCPServer, "v1beta1", "virtualmcpservers";
    /// VirtualMCPCompositeToolDefinitions.
    CompositeTools: VirtualMCPCompositeToolDefinition, "v1beta1", "virtualmcpcompositetooldefinitions";
    /// EmbeddingServers.
    EmbeddingServers: EmbeddingServer, "v1beta1", "embeddingservers";
    /// MCPRegistries.
    Registries: MCPRegistry, "v1beta1", "mcpregistries";
    /// MCPGroups.
    Groups: MCPGroup, "v1beta1", "mcpgroups";
    /// MCPToolConfigs.
    ToolConfigs: MCPToolConfig, "v1beta1", "mcptoolconfigs";
    /// MCPExternalAuthConfigs.
    ExternalAuthConfigs: MCPExternalAuthConfig, "v1beta1", "mcpexternalauthconfigs";
    /// MCPOIDCConfigs.
    OidcConfigs: MCPOIDCConfig, "v1beta1", "mcpoidcconfigs";
    /// MCPAuthzConfigs.
    AuthzConfigs: MCPAuthzConfig, "v1beta1", "mcpauthzconfigs";
    /// MCPTelemetryConfigs.
    TelemetryConfigs: MCPTelemetryConfig, "v1beta1", "mcptelemetryconfigs";
    /// MCPWebhookConfigs.
    WebhookConfigs: MCPWebhookConfig, "v1alpha1", "mcpwebhookconfigs";
}

fn keep_custom<K: DeserializeOwned>(object: &DynamicObject) -> Custom<K> {
    let metadata = ObjectMeta { managed_fields: None, resource_version: None, ..object.metadata.clone() };
    let whole = json!({
        "apiVersion": object.types.as_ref().map(|types| &types.api_version),
        "kind": object.types.as_ref().map(|types| &types.kind),
        "metadata": metadata,
        // An object may be stored without a spec; what its kind requires is then missed by name.
        "spec": object.data.get("spec").cloned().unwrap_or_else(|| json!({})),
        "status": object.data.get("status"),
    });
    // The error names the field.
    let object_or_error =
        serde_path_to_error::deserialize(whole).map(Arc::new).map_err(|error| error.to_string());
    Custom { object: object_or_error, observed: Observed::of(object, &manager_of(object)) }
}

/// A child, with what status needs to know of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Kept<F> {
    /// What its controller owns in it.
    pub observed: Observed,
    /// What status needs to know of it.
    pub facts: F,
}

/// The key by which the children of an object are found.
pub fn owner_key(uid: &str) -> String {
    format!("owner={uid}")
}

fn keep_child<F>(object: &DynamicObject, facts: F) -> Kept<F> {
    Kept { observed: Observed::of(object, &manager_of(object)), facts }
}

fn owner_index<F>(kept: &Kept<F>) -> Vec<String> {
    kept.observed.owner.iter().map(|owner| owner_key(&owner.uid)).collect()
}

/// Which of our managers an object is about: the one that has applied it.
fn manager_of(object: &DynamicObject) -> String {
    let entries = object.metadata.managed_fields.iter().flatten();
    let applied = entries.filter(|entry| entry.operation.as_deref() == Some("Apply"));
    let managers = applied.filter_map(|entry| entry.manager.as_deref());
    managers.into_iter().find(|manager| manager.starts_with(MANAGER_PREFIX)).unwrap_or_default().into()
}

macro_rules! children {
    ($( $(#[$meta:meta])* $name:ident: $type:ident, $facts:ty = $keep:expr, $selector:expr; )+) => { $(
        $(#[$meta])*
        pub struct $name;

        impl Watched for $name {
            type Kept = Kept<$facts>;
            const KIND: Kind = Kind::of::<$type>();
            const SELECTOR: Option<&'static str> = $selector;

            fn keep(object: &DynamicObject) -> Self::Kept {
                keep_child(object, $keep(object))
            }

            fn index(kept: &Self::Kept) -> Vec<String> {
                owner_index(kept)
            }
        }
    )+ };
}

fn nothing(_: &DynamicObject) {}

children! {
    /// Deployments of proxies.
    Deployments: Deployment, DeploymentFacts = DeploymentFacts::of, Some("toolhive=true");
    /// Deployments without a proxy.
    ManagedDeployments: Deployment, ManagedDeploymentFacts = ManagedDeploymentFacts::of, Some(MANAGED);
    /// StatefulSets of servers.
    StatefulSets: StatefulSet, ServerSetFacts = ServerSetFacts::of, Some("toolhive=true");
    /// StatefulSets that the operator makes itself.
    ManagedStatefulSets: StatefulSet, StatefulSetFacts = StatefulSetFacts::of, Some(MANAGED);
    /// Services.
    Services: Service, () = nothing, None;
    /// ServiceAccounts.
    ServiceAccounts: ServiceAccount, () = nothing, None;
    /// Roles.
    Roles: Role, () = nothing, None;
    /// RoleBindings.
    RoleBindings: RoleBinding, () = nothing, None;
    /// ConfigMaps: children, and those that users refer to.
    ConfigMaps: ConfigMap, Option<Arc<ConfigFacts>> = ConfigFacts::of, None;
}

impl Readable for ConfigMaps {
    type Content = BTreeMap<String, String>;

    fn content(object: DynamicObject) -> Self::Content {
        let data = object.data.get("data").cloned().unwrap_or_default();
        serde_json::from_value(data).unwrap_or_default()
    }
}

/// Secrets: children, and those that users refer to. Their values are never kept.
pub struct Secrets;

impl Watched for Secrets {
    type Kept = Kept<()>;
    const KIND: Kind = Kind::of::<Secret>();
    const METADATA_ONLY: bool = true;

    fn keep(object: &DynamicObject) -> Kept<()> {
        keep_child(object, ())
    }
}

impl Readable for Secrets {
    /// The keys of the Secret.
    type Content = Vec<String>;

    fn content(object: DynamicObject) -> Vec<String> {
        // A manifest may write values as text; the API server keeps them all in one place.
        let parts = [&object.data["data"], &object.data["stringData"]];
        parts.into_iter().filter_map(|part| part.as_object()).flat_map(|part| part.keys().cloned()).collect()
    }
}

/// The pods of proxies and servers, found by what they run.
pub struct Pods;

impl Watched for Pods {
    type Kept = PodFacts;
    const KIND: Kind = Kind::of::<Pod>();
    const SELECTOR: Option<&'static str> = Some("toolhive=true");

    fn keep(object: &DynamicObject) -> PodFacts {
        PodFacts::of(object)
    }

    fn index(pod: &PodFacts) -> Vec<String> {
        vec![pod.workload.clone()]
    }
}

/// The kinds that are worked on, for the world to wake their controllers.
struct Controlled(Builder);

impl Visit for Controlled {
    fn visit<C: Controller>(&mut self, _: C) {
        self.0 = std::mem::take(&mut self.0).control::<C::Resource>();
    }
}

/// What is watched: the kinds that are worked on, and everything that they refer to or consist of.
pub fn watches() -> Builder {
    let mut controlled = Controlled(World::builder());
    each(&Arc::default(), &mut controlled);
    controlled
        .0
        .watch::<Deployments>()
        .watch::<StatefulSets>()
        .watch::<ManagedDeployments>()
        .watch::<ManagedStatefulSets>()
        .watch::<Services>()
        .watch::<ServiceAccounts>()
        .watch::<Roles>()
        .watch::<RoleBindings>()
        .watch::<ConfigMaps>()
        .watch::<Secrets>()
        .watch::<Pods>()
}
