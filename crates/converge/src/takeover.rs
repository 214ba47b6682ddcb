//! Objects that another program made for an owner that is ours now.
//!
//! That program wrote them with plain updates, and Kubernetes remembers it as the owner of every field. If we only
//! applied ours beside it, what we later drop would stay, because the other still owns it. So its record is made ours,
//! once, under the condition that the object has not changed meanwhile. The next apply then drops what is not wanted.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ManagedFieldsEntry, OwnerReference};
use serde_json::{Value, json};

/// Whether the entry is of a plain write that made the owner the owner: the one that created the object. The entries
/// of others who wrote to it since (a person, an autoscaler, a cloud) are theirs.
pub(crate) fn concerns(entry: &ManagedFieldsEntry, owner: &OwnerReference) -> bool {
    let fields = entry.fields_v1.as_ref().map(|fields| &fields.0["f:metadata"]["f:ownerReferences"]);
    let claims = fields.and_then(Value::as_object).is_some_and(|references| {
        references.keys().any(|key| key.contains(&owner.uid) && !owner.uid.is_empty())
    });
    entry.operation.as_deref() == Some("Update") && claims
}

/// The managed fields after `manager` has taken over from the program that created the object. Its status is not part
/// of this: that is for whoever reports it.
pub(crate) fn taken_over(entries: &[ManagedFieldsEntry], owner: &OwnerReference, manager: &str) -> Value {
    let entries = entries.iter().cloned().map(|entry| {
        if concerns(&entry, owner) && entry.subresource.is_none() {
            ManagedFieldsEntry { manager: Some(manager.into()), operation: Some("Apply".into()), ..entry }
        } else {
            entry
        }
    });
    json!(entries.collect::<Vec<_>>())
}
