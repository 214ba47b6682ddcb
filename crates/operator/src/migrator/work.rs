//! The pending migration of a CRD.

use k8s_openapi::{
    api::core::v1::ObjectReference,
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Resource, ResourceExt,
    core::{ApiResource, GroupVersionKind},
};
use skep_api::{GROUP, crd::MIGRATE_LABEL};

/// A CRD of which objects may be stored in another than the storage version.
#[derive(Debug, PartialEq)]
pub(super) struct Work {
    reference: ObjectReference,
    /// The CRD at the time of the decision.
    pub(super) resource_version: String,
    /// Its objects, in the storage version.
    pub(super) resource: ApiResource,
}

impl Work {
    /// `None` if nothing is to be migrated, or if the CRD is not managed.
    pub(super) fn of(crd: &CustomResourceDefinition) -> Option<Self> {
        let labelled = crd.labels().get(MIGRATE_LABEL).is_some_and(|value| value == "true");
        if crd.spec.group != GROUP || !labelled || crd.metadata.deletion_timestamp.is_some() {
            return None;
        }
        let storage = crd.spec.versions.iter().find(|version| version.storage)?;
        let stored = crd.status.as_ref()?.stored_versions.iter().flatten();
        if stored.eq([&storage.name]) {
            return None;
        }
        let kind = GroupVersionKind::gvk(GROUP, &storage.name, &crd.spec.names.kind);
        Some(Self {
            reference: crd.object_ref(&()),
            resource_version: crd.resource_version()?,
            resource: ApiResource::from_gvk_with_plural(&kind, &crd.spec.names.plural),
        })
    }

    pub(super) fn storage(&self) -> &str {
        &self.resource.version
    }

    /// The CRD, as events name it.
    pub(super) fn reference(&self) -> &ObjectReference {
        &self.reference
    }

    pub(super) fn crd(&self) -> &str {
        self.reference.name.as_deref().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn crd(change: impl FnOnce(&mut Value)) -> CustomResourceDefinition {
        let crds = skep_api::crd::crds().unwrap();
        let groups = crds.iter().find(|crd| crd.spec.names.kind == "MCPGroup").unwrap();
        let mut crd = serde_json::to_value(groups).unwrap();
        crd["metadata"]["resourceVersion"] = json!("7");
        crd["status"] = json!({"storedVersions": ["v1alpha1", "v1beta1"]});
        change(&mut crd);
        serde_json::from_value(crd).unwrap()
    }

    #[test]
    fn only_objects_of_other_versions_are_migrated() {
        let work = Work::of(&crd(|_| {})).unwrap();
        let ApiResource { api_version, plural, .. } = &work.resource;
        assert_eq!((api_version.as_str(), plural.as_str()), ("toolhive.stacklok.dev/v1beta1", "mcpgroups"));
        assert_eq!((work.crd(), work.resource_version.as_str()), ("mcpgroups.toolhive.stacklok.dev", "7"));
        for stored in [json!(["v1alpha1"]), json!([]), json!(["v1beta1", "v1alpha1"])] {
            assert!(
                Work::of(&crd(|crd| crd["status"]["storedVersions"] = stored.clone())).is_some(),
                "{stored}"
            );
        }
        for (why, change) in [
            ("stored", (|crd| crd["status"]["storedVersions"] = json!(["v1beta1"])) as fn(&mut Value)),
            ("no label", |crd| crd["metadata"]["labels"] = json!({})),
            ("another label", |crd| crd["metadata"]["labels"][MIGRATE_LABEL] = json!("false")),
            ("another group", |crd| crd["spec"]["group"] = json!("example.org")),
            ("going", |crd| crd["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z")),
        ] {
            assert_eq!(Work::of(&crd(change)), None, "{why}");
        }
    }
}
