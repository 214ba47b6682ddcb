//! The kinds of Kubernetes itself that the operator watches: the children that it creates, and what users refer to.

use std::{collections::BTreeMap, marker::PhantomData, ops::Deref, sync::Arc};

use k8s_openapi::api::{
    apps::v1::{Deployment, StatefulSet},
    core::v1::{ConfigMap, Pod, Secret, Service, ServiceAccount},
    rbac::v1::{Role, RoleBinding},
};
use kube::core::DynamicObject;
use skep_config::labels;
use skep_converge::{Kind, Observed};
use skep_world::{Content, Watched};

use super::{
    facts::{
        ConfigFacts, DeploymentFacts, ManagedDeploymentFacts, PodFacts, ServerSetFacts, StatefulSetFacts,
        is_rolling,
    },
    manager_of,
};

/// The label selector of workloads that the operator creates and that have no proxy.
const MANAGED: &str = "app.kubernetes.io/managed-by=toolhive-operator";

/// What is cached of a child.
#[derive(Clone, Debug, PartialEq)]
pub struct CachedChild<F> {
    /// The fields that its controller owns.
    pub observed: Observed,
    /// What the status is computed from.
    pub facts: F,
    /// The server that it belongs to by its labels, if it has no controller: its proxy created it, or someone removed the controller
    /// by hand.
    pub server: Option<Box<str>>,
    /// Whether it runs pods of an older template.
    pub is_rolling: bool,
}

/// The index key of the children of an object.
pub fn owner_key(uid: &str) -> String {
    format!("owner={uid}")
}

fn project_child<F>(object: &DynamicObject, facts: F) -> CachedChild<F> {
    let observed = Observed::of(object, manager_of(object));
    let label = |key| object.metadata.labels.as_ref()?.get(key).map(String::as_str);
    let has_no_controller = observed.owner.is_none() && label(labels::TOOLHIVE) == Some(labels::TRUE);
    // On what the operator creates, `app` is the kind.
    let server =
        label(labels::NAME).or_else(|| label(labels::APP)).filter(|_| has_no_controller).map(Into::into);
    CachedChild { observed, facts, server, is_rolling: is_rolling(object) }
}

fn owner_index<F>(cached: &CachedChild<F>) -> Vec<String> {
    cached.observed.owner.iter().map(|owner| owner_key(&owner.uid)).collect()
}

macro_rules! children {
    ($( $(#[$meta:meta])* $name:ident: $type:ident, $facts:ty = $facts_of:expr, $selector:expr; )+) => { $(
        $(#[$meta])*
        pub struct $name;

        impl Watched for $name {
            type Cached = CachedChild<$facts>;
            const SELECTOR: Option<&'static str> = $selector;

            fn kind() -> Kind {
                Kind::of::<$type>()
            }

            fn project(object: &DynamicObject) -> Self::Cached {
                project_child(object, $facts_of(object))
            }

            fn index(cached: &Self::Cached) -> Vec<String> {
                owner_index(cached)
            }
        }
    )+ };
}

fn nothing(_: &DynamicObject) {}

/// The pull secrets of a ServiceAccount that OpenShift has added to it.
fn platform_secrets(account: &DynamicObject) -> Vec<String> {
    let prefix = format!("{}-dockercfg-", account.metadata.name.as_deref().unwrap_or_default());
    let secrets = account.data["imagePullSecrets"].as_array().into_iter().flatten();
    let names = secrets.filter_map(|secret| secret["name"].as_str());
    names.filter(|name| name.starts_with(&prefix)).map(Into::into).collect()
}

children! {
    /// Deployments of proxies.
    Deployments: Deployment, DeploymentFacts = DeploymentFacts::of, Some("toolhive=true");
    /// Deployments without a proxy.
    ManagedDeployments: Deployment, ManagedDeploymentFacts = ManagedDeploymentFacts::of, Some(MANAGED);
    /// StatefulSets of servers.
    StatefulSets: StatefulSet, ServerSetFacts = ServerSetFacts::of, Some("toolhive=true");
    /// StatefulSets that the operator creates itself.
    ManagedStatefulSets: StatefulSet, StatefulSetFacts = StatefulSetFacts::of, Some(MANAGED);
    /// Services.
    Services: Service, () = nothing, None;
    /// ServiceAccounts.
    ServiceAccounts: ServiceAccount, Vec<String> = platform_secrets, None;
    /// Roles.
    Roles: Role, () = nothing, None;
    /// RoleBindings.
    RoleBindings: RoleBinding, () = nothing, None;
    /// ConfigMaps: children, and those that users refer to.
    ConfigMaps: ConfigMap, Option<Arc<ConfigFacts>> = ConfigFacts::of, None;
}

/// The data of a ConfigMap with policies.
#[derive(Default)]
pub struct Texts(BTreeMap<String, String>);

impl Deref for Texts {
    type Target = BTreeMap<String, String>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl Content for Texts {
    type Of = ConfigMaps;

    fn of(object: DynamicObject) -> Self {
        let data = object.data.get("data").cloned().unwrap_or_default();
        Self(serde_json::from_value(data).unwrap_or_default())
    }

    fn size(&self) -> usize {
        self.iter().map(|(key, text)| key.len() + text.len()).sum()
    }
}

/// The keys of a Secret or ConfigMap. Certificates are large, and nothing but their existence is needed.
pub struct Keys<W>(Vec<String>, PhantomData<fn() -> W>);

impl<W> Keys<W> {
    pub(crate) fn contains(&self, key: &str) -> bool {
        self.0.iter().any(|known| known == key)
    }
}

impl<W: Watched> Content for Keys<W> {
    type Of = W;

    fn of(object: DynamicObject) -> Self {
        // A manifest may write values as text; the API server keeps them all in one place.
        let parts = [&object.data["data"], &object.data["stringData"]].into_iter();
        let parts = parts.filter_map(|part| part.as_object());
        Self(parts.flat_map(|part| part.keys().cloned()).collect(), PhantomData)
    }

    fn size(&self) -> usize {
        self.0.iter().map(String::len).sum()
    }
}

/// Secrets: children, and those that users refer to. Their values are never cached.
pub struct Secrets;

impl Watched for Secrets {
    type Cached = CachedChild<()>;
    const METADATA_ONLY: bool = true;

    fn kind() -> Kind {
        Kind::of::<Secret>()
    }

    fn project(object: &DynamicObject) -> CachedChild<()> {
        project_child(object, ())
    }
}

/// The pods of proxies and servers, indexed by their workload.
pub struct Pods;

impl Watched for Pods {
    type Cached = PodFacts;
    const SELECTOR: Option<&'static str> = Some("toolhive=true");

    fn kind() -> Kind {
        Kind::of::<Pod>()
    }

    fn project(object: &DynamicObject) -> PodFacts {
        PodFacts::of(object)
    }

    fn index(pod: &PodFacts) -> Vec<String> {
        vec![pod.workload.clone()]
    }
}
