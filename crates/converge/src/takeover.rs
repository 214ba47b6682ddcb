//! Takeover of objects that another program created for an owner that we control now.
//!
//! That program wrote them with plain updates, and Kubernetes records it as the owner of every field. If we only
//! applied our fields in addition, fields that we later drop would stay, because the other program still owns them.
//! So its managed fields become ours, once, under the condition that the object has not changed meanwhile. The next
//! apply then removes what is not desired.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{FieldsV1, ManagedFieldsEntry, OwnerReference};
use serde_json::{Value, json};

use crate::{
    fields::{split, union},
    owned::owned,
};

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

/// The managed fields of a status before and after a takeover.
pub(crate) struct StatusTakeover<'a> {
    /// The entries of the programs that reported the same fields before.
    pub(crate) from: Vec<&'a ManagedFieldsEntry>,
    /// Their fields, without those that others report.
    pub(crate) fields: Value,
    /// What they keep: the fields that others report.
    kept: Vec<ManagedFieldsEntry>,
}

impl<'a> StatusTakeover<'a> {
    /// The takeover of the status fields that are desired, and of what was reported with them. Programs that report other
    /// fields keep them, and so do those that report the fields `of_others`. `None` if there is nothing to be taken over.
    pub(crate) fn new(entries: &'a [ManagedFieldsEntry], desired: &Value, of_others: &Value) -> Option<Self> {
        let fields = |entry: &ManagedFieldsEntry| entry.fields_v1.clone().unwrap_or_default().0;
        let concerns = |entry: &&ManagedFieldsEntry| {
            is_status_update(entry)
                && owned(desired, &fields(entry)).is_some_and(|shared| !is_hollow(&shared))
        };
        let from: Vec<_> = entries.iter().filter(concerns).collect();
        let split = || from.iter().map(|entry| (split(&fields(entry), of_others), *entry));
        let kept = split().filter_map(|((_, kept), entry)| {
            Some(ManagedFieldsEntry { fields_v1: Some(FieldsV1(kept?)), ..entry.clone() })
        });
        // It may have reported in several versions of the API, and a manager has one entry for what it applied.
        let fields = split().filter_map(|((taken, _), _)| taken).reduce(union)?;
        Some(Self { fields, kept: kept.collect(), from })
    }

    /// All managed fields, with `manager` as the owner of what is taken over.
    pub(crate) fn entries(&self, entries: &[ManagedFieldsEntry], manager: &str) -> Value {
        let ours = self.from.last().map(|last| ManagedFieldsEntry {
            manager: Some(manager.into()),
            operation: Some("Apply".into()),
            fields_v1: Some(FieldsV1(self.fields.clone())),
            ..(*last).clone()
        });
        let rest = entries.iter().filter(|entry| !self.from.contains(entry));
        json!(rest.chain(&self.kept).chain(&ours).collect::<Vec<_>>())
    }
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
        let taken = |entries: &[ManagedFieldsEntry], of_others: &Value| {
            StatusTakeover::new(entries, &desired, of_others).map(|takeover| takeover.entries(entries, "new"))
        };
        assert_eq!(taken(&entries, &json!({})), Some(json!([entries[2], ours])));
        assert_eq!(taken(&entries[2..], &json!({})), None);

        let mut kept = entries[0].clone();
        kept.fields_v1 = Some(FieldsV1(json!({"f:status": {"f:dropped": {}}})));
        let mut fields = ours.fields_v1.clone().unwrap();
        fields.0["f:status"].as_object_mut().unwrap().remove("f:dropped");
        ours.fields_v1 = Some(fields);
        let of_others = json!({"f:status": {"f:dropped": {}}});
        assert_eq!(taken(&entries, &of_others), Some(json!([entries[2], kept, ours])));
    }
}
