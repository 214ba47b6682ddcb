//! Kinds of objects, by their names in URLs and manifests.

use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};

/// A kind of namespaced object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Kind {
    /// The API group; empty for the core group.
    pub group: &'static str,
    /// The version within the group.
    pub version: &'static str,
    /// The kind as manifests write it.
    pub kind: &'static str,
    /// The kind as URLs write it.
    pub plural: &'static str,
}

impl Kind {
    /// The kind of one of Kubernetes' own types.
    pub const fn of<K: k8s_openapi::Resource>() -> Self {
        Self { group: K::GROUP, version: K::VERSION, kind: K::KIND, plural: K::URL_PATH_SEGMENT }
    }

    /// Whether objects of the kind run pods that they replace when their template changes.
    pub fn runs_pods(&self) -> bool {
        [Self::of::<Deployment>(), Self::of::<StatefulSet>()].contains(self)
    }

    /// Group and version as manifests write them.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.into() } else { format!("{}/{}", self.group, self.version) }
    }

    /// The URL path of the kind in a namespace, or in all of them.
    pub fn path(&self, namespace: Option<&str>) -> String {
        let root = if self.group.is_empty() { "/api" } else { "/apis" };
        let namespace = namespace.map(|namespace| format!("namespaces/{namespace}/")).unwrap_or_default();
        format!("{root}/{}/{namespace}{}", self.api_version(), self.plural)
    }
}
