//! Takeover of objects that another program created for an owner that we control now.
//!
//! That program wrote them with plain updates, and Kubernetes records it as the owner of every field. If we only
//! applied our fields in addition, fields that we later drop would stay, because the other program still owns them.
//! So its managed fields become ours, once, under the condition that the object has not changed meanwhile. The next
//! apply then removes what is not desired.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{FieldsV1, ManagedFieldsEntry, OwnerReference};
use serde_json::{Value, json};

use crate::{fields::union, owned::owned};

/// Whether the entry is of the plain write that set the owner reference: the one that created the object. The entries
/// of later writers (a user, an autoscaler, a cloud controller) stay theirs.
pub(crate) fn concerns(entry: &ManagedFieldsEntry, owner: &OwnerReference) -> bool {
    let fields = entry.fields_v1.as_ref().map(|fields| &fields.0["f:metadata"]["f:ownerReferences"]);
    let claims = fields.and_then(Value::as_object).is_some_and(|references| {
        references.keys().any(|key| key.contains(&owner.uid) && !owner.uid.is_empty())
    });
    entry.operation.as_deref() == Some("Update") && claims
}

/// The managed fields after `manager` has taken over from the program that created the object. The status is
/// excluded: it belongs to the program that reports it.
pub(crate) fn after_takeover(entries: &[ManagedFieldsEntry], owner: &OwnerReference, manager: &str) -> Value {
    let entries = entries.iter().cloned().map(|entry| {
        if concerns(&entry, owner) && entry.subresource.is_none() {
            ManagedFieldsEntry { manager: Some(manager.into()), operation: Some("Apply".into()), ..entry }
        } else {
            entry
        }
    });
    json!(entries.collect::<Vec<_>>())
}

/// Whether the entry is of a plain write to the status.
pub(crate) fn is_status_update(entry: &ManagedFieldsEntry) -> bool {
    entry.operation.as_deref() == Some("Update") && entry.subresource.as_deref() == Some("status")
}

/// The managed fields after `manager` has taken over the status from the program that reported the same fields
/// before. Programs that report other fields keep them. `None` if there was no such program.
pub(crate) fn status_after_takeover(
    entries: &[ManagedFieldsEntry],
    desired: &Value,
    manager: &str,
) -> Option<Value> {
    let fields = |entry: &ManagedFieldsEntry| entry.fields_v1.clone().unwrap_or_default().0;
    let concerns = |entry: &&ManagedFieldsEntry| {
        is_status_update(entry) && owned(desired, &fields(entry)).is_some_and(|shared| !is_hollow(&shared))
    };
    let (theirs, mut rest): (Vec<_>, Vec<_>) = entries.iter().partition(concerns);
    // It may have reported in several versions of the API, and a manager has one entry for what it applied.
    let all = theirs.iter().map(|entry| fields(entry)).reduce(union)?;
    let ours = ManagedFieldsEntry {
        manager: Some(manager.into()),
        operation: Some("Apply".into()),
        fields_v1: Some(FieldsV1(all)),
        ..(*theirs.last()?).clone()
    };
    rest.push(&ours);
    Some(json!(rest))
}

/// Whether a value has no leaves.
pub(crate) fn is_hollow(value: &Value) -> bool {
    match value {
        Value::Object(map) => map.values().all(is_hollow),
        Value::Array(items) => items.iter().all(is_hollow),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(manager: &str, version: &str, fields: Value) -> ManagedFieldsEntry {
        serde_json::from_value(json!({
            "manager": manager, "operation": "Update", "apiVersion": version, "subresource": "status",
            "fieldsType": "FieldsV1", "fieldsV1": {"f:status": fields},
        }))
        .unwrap()
    }

    #[test]
    fn entries_of_a_reporter_of_the_same_fields_are_taken_over_in_all_versions() {
        let ready = r#"k:{"type":"Ready"}"#;
        let entries = [
            entry("old", "v1alpha1", json!({"f:phase": {}, "f:dropped": {}})),
            entry("old", "v1beta1", json!({"f:conditions": {".": {}, ready: {".": {}, "f:reason": {}}}})),
            entry(
                "health",
                "v1beta1",
                json!({"f:conditions": {r#"k:{"type":"Healthy"}"#: {".": {}, "f:type": {}}}}),
            ),
        ];
        let desired = json!({"status": {"phase": "Ready", "conditions": [{"type": "Ready", "reason": "a"}]}});
        let mut ours = entry(
            "new",
            "v1beta1",
            json!({"f:phase": {}, "f:dropped": {}, "f:conditions": {".": {}, ready: {".": {}, "f:reason": {}}}}),
        );
        ours.operation = Some("Apply".into());
        assert_eq!(status_after_takeover(&entries, &desired, "new"), Some(json!([entries[2], ours])));
        assert_eq!(status_after_takeover(&entries[2..], &desired, "new"), None);
    }
}
