//! Live objects, reduced to what a controller needs.

use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ManagedFieldsEntry, ObjectMeta, OwnerReference};
use kube::core::DynamicObject;
use serde_json::Value;
use skep_config::annotations::ADOPT;

use crate::{
    Digest,
    documents::{self, parsed},
    owned::owned,
    takeover,
};

/// The identity and revision of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Meta {
    /// The object's uid: a recreated object of the same name has a different one.
    pub uid: String,
    /// The object's resourceVersion.
    pub resource_version: String,
    /// The object's generation, if its kind has one.
    pub generation: Option<i64>,
}

impl Meta {
    /// The meta of an object.
    pub fn of(metadata: &ObjectMeta) -> Self {
        Self {
            uid: metadata.uid.clone().unwrap_or_default(),
            resource_version: metadata.resource_version.clone().unwrap_or_default(),
            generation: metadata.generation,
        }
    }

    /// What changes whenever someone changes the object. A change of a status alone does not count, if the kind has generations.
    pub fn version(&self) -> String {
        self.generation.map_or_else(|| self.resource_version.clone(), |generation| generation.to_string())
    }

    /// The resourceVersion as a number. It increases in all versions of the API server.
    pub fn revision(&self) -> u64 {
        self.resource_version.parse().unwrap_or_default()
    }

    /// Whether this state is older than the other.
    pub fn is_older_than(&self, other: &Self) -> bool {
        self.revision() < other.revision()
    }
}

/// The object that controls another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Its uid.
    pub uid: String,
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
}

/// Its kind and name, for messages.
impl fmt::Display for Owner {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", self.kind, self.name)
    }
}

/// What a field manager needs of a live object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Observed {
    /// The controller of the object.
    pub owner: Option<Owner>,
    /// The digest of what the manager owns in it. `None` if it never applied it.
    pub owned: Option<Digest>,
    /// Whether it was handed over: nobody controls it, and it may be written all the same.
    pub handed_over: bool,
    /// The digest of what the manager owns in its status. `None` if it never applied it.
    pub owned_status: Option<Digest>,
    /// The documents in it, in any layout, if it is a ConfigMap with configuration files.
    pub documents: Option<Digest>,
    /// Another program created the object by a plain write for the object that now controls it, and owns its fields.
    pub takeover: bool,
    /// Others have reported its status by plain writes, and the manager never has: part of it may have to be taken
    /// over.
    pub status_takeover: bool,
}

impl Observed {
    /// Whether others made the object, and nobody has handed it over.
    pub fn is_of_others(&self) -> bool {
        self.owner.is_none() && self.owned.is_none() && !self.handed_over
    }

    /// What `manager` needs of the object.
    pub fn of(object: &DynamicObject, manager: &str) -> Self {
        let owner = controller(&object.metadata);
        let entries = object.metadata.managed_fields.as_deref().unwrap_or_default();
        let entry = |subresource| entries.iter().find(|entry| is_apply(entry, manager, subresource));
        let owned = entry(None).map(|entry| digest(object, entry));
        // Programs that write after our first apply did not create the object.
        let takeover = owned.is_none()
            && owner.is_some_and(|owner| entries.iter().any(|entry| takeover::concerns(entry, owner)));
        let owned_status = entry(Some("status")).map(|entry| digest(object, entry));
        Self {
            owner: owner.map(|owner| Owner {
                uid: owner.uid.clone(),
                kind: owner.kind.clone(),
                name: owner.name.clone(),
            }),
            documents: documents::of(object),
            handed_over: is_handed_over(&object.metadata),
            owned,
            owned_status,
            takeover,
            status_takeover: owned_status.is_none() && entries.iter().any(takeover::is_status_update),
        }
    }
}

fn is_handed_over(metadata: &ObjectMeta) -> bool {
    metadata.annotations.as_ref().and_then(|all| all.get(ADOPT)).is_some_and(|value| value == "true")
}

pub(crate) fn is_apply(entry: &ManagedFieldsEntry, manager: &str, subresource: Option<&str>) -> bool {
    entry.manager.as_deref() == Some(manager)
        && entry.operation.as_deref() == Some("Apply")
        && entry.subresource.as_deref().filter(|name| !name.is_empty()) == subresource
}

pub(crate) fn controller(metadata: &ObjectMeta) -> Option<&OwnerReference> {
    metadata.owner_references.iter().flatten().find(|owner| owner.controller == Some(true))
}

/// The digest of the live values that the entry's manager owns.
fn digest(object: &DynamicObject, entry: &ManagedFieldsEntry) -> Digest {
    let fields = entry.fields_v1.as_ref().map_or(&Value::Null, |fields| &fields.0);
    let mut values = owned(&object.data, fields).unwrap_or_default();
    // kube keeps the metadata apart from the rest.
    if let Some(fields) = fields.get("f:metadata") {
        let metadata = serde_json::to_value(ownable(&object.metadata)).unwrap_or_default();
        if let (Some(metadata), Value::Object(map)) = (owned(&metadata, fields), &mut values) {
            map.insert("metadata".into(), metadata);
        }
    }
    Digest::of(&parsed(values))
}

/// The metadata that a field manager can own. The rest belongs to the API server and is never in managed fields; the
/// managed fields themselves are the largest part and the most expensive to traverse.
pub(crate) fn ownable(metadata: &ObjectMeta) -> ObjectMeta {
    ObjectMeta {
        annotations: metadata.annotations.clone(),
        finalizers: metadata.finalizers.clone(),
        generate_name: metadata.generate_name.clone(),
        labels: metadata.labels.clone(),
        owner_references: metadata.owner_references.clone(),
        ..ObjectMeta::default()
    }
}
