//! The identity of a workload: its names, labels and owner.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use skep_config::labels;
use skep_converge::Kind;

/// The custom resource that owns the children.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    pub(crate) kind: Kind,
    /// The kind in lower case, which labels carry.
    pub(crate) app: &'static str,
    pub(crate) name: String,
    pub(crate) namespace: String,
    pub(crate) uid: String,
}

impl Identity {
    pub(crate) fn new(kind: Kind, app: &'static str, metadata: &ObjectMeta) -> Self {
        Self {
            kind,
            app,
            name: metadata.name.clone().unwrap_or_default(),
            namespace: metadata.namespace.clone().unwrap_or_default(),
            uid: metadata.uid.clone().unwrap_or_default(),
        }
    }

    /// The labels of the proxy's Deployment, pods and Service, by which the pods are also selected.
    pub(crate) fn labels(&self) -> BTreeMap<String, String> {
        let labels = [
            (labels::APP, self.app),
            (labels::APP_NAME, self.app),
            (labels::APP_INSTANCE, &self.name),
            (labels::TOOLHIVE, labels::TRUE),
            (labels::NAME, &self.name),
        ];
        labels.map(|(key, value)| (key.into(), value.into())).into()
    }

    /// The labels as a selector in text.
    pub(crate) fn selector(&self) -> String {
        let labels = self.labels();
        labels.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(",")
    }

    /// The metadata of a child.
    pub(crate) fn metadata(&self, name: impl Into<String>) -> ObjectMeta {
        ObjectMeta {
            name: Some(name.into()),
            namespace: Some(self.namespace.clone()),
            owner_references: Some(vec![self.owner()]),
            ..ObjectMeta::default()
        }
    }

    pub(crate) fn owner(&self) -> OwnerReference {
        OwnerReference {
            api_version: self.kind.api_version(),
            kind: self.kind.kind.into(),
            name: self.name.clone(),
            uid: self.uid.clone(),
            controller: Some(true),
            block_owner_deletion: Some(true),
        }
    }
}

/// A user's additions below our own: on the same key, ours wins.
pub(crate) fn added(
    ours: BTreeMap<String, String>,
    users: Option<&BTreeMap<String, String>>,
) -> Option<BTreeMap<String, String>> {
    let mut all = users.cloned().unwrap_or_default();
    all.extend(ours);
    (!all.is_empty()).then_some(all)
}
