//! Deletion of objects that are no longer desired.

use http::Method;
use serde_json::{Value, json};

use crate::{Kind, Meta, Mode, Planned, Result, Write, Writer, request::request_error};

/// Deletes an object, if its uid and resourceVersion are still the observed ones; without a resourceVersion, in any state. A writer that plans only reports
/// it.
pub async fn prune(
    writer: &Writer,
    kind: Kind,
    namespace: &str,
    name: &str,
    seen: &Meta,
) -> Result<Option<Planned>> {
    let mut options = json!({
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "propagationPolicy": "Background",
        "preconditions": {"uid": seen.uid},
    });
    if !seen.resource_version.is_empty() {
        options["preconditions"]["resourceVersion"] = json!(seen.resource_version);
    }
    let path = format!("{}/{name}", kind.path(Some(namespace)));
    match writer.request::<Value>(Method::DELETE, &path, "application/json", &options).await {
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(None),
        Err(source) => Err(request_error("delete", kind, namespace, name, source)),
        Ok(_) => Ok((writer.mode() == Mode::Plan).then(|| Planned {
            write: Write::Delete,
            kind,
            namespace: namespace.into(),
            name: name.into(),
            from: Vec::new(),
            changes: Vec::new(),
        })),
    }
}
