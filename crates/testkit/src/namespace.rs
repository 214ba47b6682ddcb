//! A namespace per test, so that tests share a control plane and nothing else.

use std::{
    path::{Path, PathBuf},
    process,
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use k8s_openapi::api::{
    authorization::v1::SubjectAccessReview,
    core::v1::Namespace as KubeNamespace,
    rbac::v1::{ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding},
};
use kube::{
    Api, Client, Resource,
    api::{ObjectMeta, PostParams},
    core::NamespaceResourceScope,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::{Handle, PATIENCE, User, kubelet::Kubelet};

/// A namespace for one test, and the test's access to it.
pub struct Namespace {
    name: String,
    folder: PathBuf,
    client: Client,
}

impl Namespace {
    pub(crate) async fn create(folder: PathBuf) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("test-{}-{number}", process::id());
        let client = User::admin(&folder).client();
        let namespace = KubeNamespace {
            metadata: ObjectMeta { name: Some(name.clone()), ..ObjectMeta::default() },
            ..KubeNamespace::default()
        };
        let api = Api::all(client.clone());
        api.create(&PostParams::default(), &namespace).await.expect("the namespace is created");
        Self { name, folder, client }
    }

    /// The name of the namespace.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The folder of the control plane, where programs can put files.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// A client that may do everything.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// Objects of one kind in this namespace.
    pub fn api<K>(&self) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client.clone(), &self.name)
    }

    /// The object of this kind and name in this namespace.
    pub fn object<K>(&self, name: &str) -> Handle<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + std::fmt::Debug,
        K: Serialize + DeserializeOwned,
    {
        Handle::new(self.api(), name)
    }

    /// Creates an object in this namespace.
    pub async fn create_object<K>(&self, object: &K) -> K
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + std::fmt::Debug,
        K: Serialize + DeserializeOwned,
    {
        self.api::<K>().create(&PostParams::default(), object).await.expect("the object is created")
    }

    /// What the kubelet would do to the pods of this namespace.
    pub fn kubelet(&self) -> Kubelet {
        Kubelet::new(self.client.clone(), &self.name)
    }

    /// A user that no other test has, with no permissions.
    pub fn user(&self, role: &str) -> User {
        User::new(&self.folder, &format!("{}-{role}", self.name), &[])
    }

    /// A user who may do everything, but is counted apart from the others.
    pub fn admin(&self, role: &str) -> User {
        User::new(&self.folder, &format!("{}-{role}", self.name), &["system:masters"])
    }

    /// Lets the user do this in the namespace.
    pub async fn grant(&self, user: &User, rules: Vec<PolicyRule>) {
        let metadata = || ObjectMeta { name: Some(user.name().into()), ..ObjectMeta::default() };
        let role = Role { metadata: metadata(), rules: Some(rules) };
        self.create_object(&role).await;
        self.create_object(&binding::<RoleBinding>(user, "Role")).await;
        self.until_allowed(user, role.rules.as_deref().unwrap_or_default()).await;
    }

    /// Waits until the API server knows of a permission. It learns of roles by a watch of its own.
    async fn until_allowed(&self, user: &User, rules: &[PolicyRule]) {
        let first = |list: &Option<Vec<String>>| list.as_ref().and_then(|list| list.first().cloned());
        let Some(rule) = rules.last() else { return };
        let review = json!({"metadata": {}, "spec": {
            "user": user.name(),
            "resourceAttributes": {
                "namespace": self.name, "verb": rule.verbs.first(), "group": first(&rule.api_groups),
                "resource": first(&rule.resources), "name": first(&rule.resource_names),
            },
        }});
        let review: SubjectAccessReview = serde_json::from_value(review).expect("a review");
        let reviews: Api<SubjectAccessReview> = Api::all(self.client());
        let allowed = async {
            loop {
                let answer = reviews.create(&PostParams::default(), &review).await.expect("a review");
                if answer.status.is_some_and(|status| status.allowed) {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(PATIENCE, allowed).await.expect("the API server knows the role");
    }

    /// Lets the user do this in the whole cluster.
    pub async fn grant_everywhere(&self, user: &User, rules: Vec<PolicyRule>) {
        let metadata = ObjectMeta { name: Some(user.name().into()), ..ObjectMeta::default() };
        let role = ClusterRole { metadata, rules: Some(rules), aggregation_rule: None };
        let params = PostParams::default();
        Api::all(self.client()).create(&params, &role).await.expect("the ClusterRole is created");
        let binding = binding::<ClusterRoleBinding>(user, "ClusterRole");
        Api::all(self.client()).create(&params, &binding).await.expect("the ClusterRoleBinding is created");
    }
}

fn binding<B: DeserializeOwned>(user: &User, role_kind: &str) -> B {
    let group = "rbac.authorization.k8s.io";
    let binding: Value = json!({
        "metadata": {"name": user.name()},
        "roleRef": {"apiGroup": group, "kind": role_kind, "name": user.name()},
        "subjects": [{"apiGroup": group, "kind": "User", "name": user.name()}],
    });
    serde_json::from_value(binding).expect("a binding")
}
