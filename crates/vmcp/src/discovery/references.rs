//! Secrets and ConfigMaps that members refer to.

use std::{
    collections::BTreeSet,
    sync::{Mutex, PoisonError},
};

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::Api;
use skep_api::refs::SecretKeyRef;

use crate::Cluster;

/// Reads what members refer to, and remembers what that was.
pub(super) struct References<'a> {
    cluster: &'a Cluster,
    used: Mutex<BTreeSet<String>>,
}

impl<'a> References<'a> {
    pub(super) fn new(cluster: &'a Cluster) -> Self {
        Self { cluster, used: Mutex::default() }
    }

    /// The names of all that was read, whether it existed or not.
    pub(super) fn used(self) -> BTreeSet<String> {
        self.used.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// The value of a key of a Secret.
    pub(super) async fn secret(&self, reference: &SecretKeyRef) -> Result<String, String> {
        let SecretKeyRef { name, key } = reference;
        let secret: Option<Secret> = self.read("Secret", name).await?;
        let value = secret.and_then(|secret| secret.data?.remove(key));
        let value = value.ok_or_else(|| format!("Secret {name} has no key {key}"))?;
        String::from_utf8(value.0).map_err(|_| format!("key {key} of Secret {name} is not a text"))
    }

    /// The value of a key of a ConfigMap.
    pub(super) async fn config(&self, name: &str, key: &str) -> Result<String, String> {
        let config: Option<ConfigMap> = self.read("ConfigMap", name).await?;
        let value = config.and_then(|config| config.data?.remove(key));
        value.ok_or_else(|| format!("ConfigMap {name} has no key {key}"))
    }

    async fn read<K>(&self, kind: &str, name: &str) -> Result<Option<K>, String>
    where
        K: kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>
            + Clone
            + std::fmt::Debug
            + serde::de::DeserializeOwned,
    {
        self.used.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned());
        let api: Api<K> = Api::namespaced(self.cluster.client.clone(), &self.cluster.namespace);
        // The error of the API server names the object, and has nothing of its content.
        api.get_opt(name).await.map_err(|error| format!("{kind} {name} cannot be read: {error}"))
    }
}
