//! The metadata of a custom resource: finalizers and annotations.
//!
//! The object belongs to its users. So these are merge patches that contain only the changes and the observed
//! resourceVersion: after a concurrent write, the patch is rejected and the object reconciled again.

use std::collections::BTreeMap;

use kube::core::ObjectMeta;
use serde_json::{Value, json};

use crate::{
    Applied, Kind, Mode, Planned, Result, Write, Writer,
    changes::changes,
    observed::ownable,
    request::{MERGE_PATCH, Patch},
};

/// A finalizer by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finalizer(pub &'static str);

impl Finalizer {
    /// Whether the object has it.
    pub fn is_on(&self, metadata: &ObjectMeta) -> bool {
        metadata.finalizers.iter().flatten().any(|name| name == self.0)
    }

    /// Adds it to the object.
    pub async fn add(&self, writer: &Writer, kind: Kind, metadata: &ObjectMeta) -> Result<Applied> {
        let mut finalizers = metadata.finalizers.clone().unwrap_or_default();
        finalizers.push(self.0.into());
        patch(writer, kind, metadata, "add a finalizer to", json!({"finalizers": finalizers})).await
    }

    /// Removes it from the object.
    pub async fn remove(&self, writer: &Writer, kind: Kind, metadata: &ObjectMeta) -> Result<Applied> {
        let mut finalizers = metadata.finalizers.clone().unwrap_or_default();
        finalizers.retain(|name| name != self.0);
        // An empty list would be stored as such.
        let finalizers = if finalizers.is_empty() { Value::Null } else { json!(finalizers) };
        patch(writer, kind, metadata, "remove a finalizer from", json!({"finalizers": finalizers})).await
    }
}

/// Sets annotations of the object, and leaves the others unchanged.
pub async fn annotate(
    writer: &Writer,
    kind: Kind,
    metadata: &ObjectMeta,
    annotations: &BTreeMap<&str, String>,
) -> Result<Applied> {
    patch(writer, kind, metadata, "annotate", json!({"annotations": annotations})).await
}

/// Sets an annotation of the pod template of a workload, and leaves everything else unchanged. This replaces its pods.
pub async fn annotate_pods(
    writer: &Writer,
    kind: Kind,
    namespace: &str,
    name: &str,
    key: &str,
    value: &str,
) -> Result<Applied> {
    let query = format!("fieldManager={}", writer.manager());
    let body = json!({"spec": {"template": {"metadata": {"annotations": {key: value}}}}});
    let patch = Patch { content: MERGE_PATCH, query: &query, body: &body, subresource: None };
    let patched = patch.send(writer, "restart", kind, namespace, name).await?;
    if writer.mode() == Mode::Write {
        return Ok(Applied::Written(Box::new(patched)));
    }
    Ok(Applied::Planned(Box::new(Planned {
        write: Write::Apply,
        kind,
        namespace: namespace.into(),
        name: name.into(),
        from: Vec::new(),
        changes: changes(&json!({}), &body),
    })))
}

async fn patch(
    writer: &Writer,
    kind: Kind,
    metadata: &ObjectMeta,
    verb: &'static str,
    mut fields: Value,
) -> Result<Applied> {
    fields["resourceVersion"] = json!(metadata.resource_version);
    let namespace = metadata.namespace.as_deref().unwrap_or_default();
    let name = metadata.name.as_deref().unwrap_or_default();
    let query = format!("fieldManager={}", writer.manager());
    let body = json!({"metadata": fields});
    let patch = Patch { content: MERGE_PATCH, query: &query, body: &body, subresource: None };
    let patched = patch.send(writer, verb, kind, namespace, name).await?;
    if writer.mode() == Mode::Write {
        return Ok(Applied::Written(Box::new(patched)));
    }
    let value = |metadata: &ObjectMeta| json!({"metadata": ownable(metadata)});
    Ok(Applied::Planned(Box::new(Planned {
        write: Write::Mark,
        kind,
        namespace: namespace.into(),
        name: name.into(),
        from: Vec::new(),
        changes: changes(&value(metadata), &value(&patched.metadata)),
    })))
}
