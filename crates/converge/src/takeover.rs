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

/// The managed fields after `manager` has taken over from the program that created the object, in its main part and
/// in its status. What the manager itself has applied before is left out: the record that it takes over covers it.
pub(crate) fn taken_over(entries: &[ManagedFieldsEntry], owner: &OwnerReference, manager: &str) -> Value {
    let creators: Vec<&Option<String>> =
        entries.iter().filter(|entry| concerns(entry, owner)).map(|entry| &entry.manager).collect();
    let entries = entries.iter().filter_map(|entry| {
        let of_creator = entry.operation.as_deref() == Some("Update") && creators.contains(&&entry.manager);
        let ours = entry.operation.as_deref() == Some("Apply") && entry.manager.as_deref() == Some(manager);
        if ours {
            return None;
        }
        let entry = entry.clone();
        if !of_creator || entry.subresource.is_some() {
            return Some(json!(entry));
        }
        Some(json!(ManagedFieldsEntry {
            manager: Some(manager.into()),
            operation: Some("Apply".into()),
            ..entry
        }))
    });
    Value::Array(entries.collect())
}
