//! Objects that are not wanted any more.

use http::Request;
use serde_json::{Value, json};

use crate::{Kind, Meta, Result, Writer, client::refused};

/// Deletes an object, if it is still the one that was looked at and still as it was.
pub async fn prune(writer: &Writer, kind: Kind, namespace: &str, name: &str, seen: &Meta) -> Result<()> {
    let options = json!({
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "propagationPolicy": "Background",
        "preconditions": {"uid": seen.uid, "resourceVersion": seen.resource_version},
    });
    let path = format!("{}/{name}", kind.path(Some(namespace)));
    let refused = |source| refused("delete", kind, namespace, name, source);
    let request = Request::delete(path).header("content-type", "application/json");
    let request =
        request.body(options.to_string().into_bytes()).map_err(|e| refused(kube::Error::HttpError(e)))?;
    match writer.client().request::<Value>(request).await {
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
        answer => answer.map(drop).map_err(refused),
    }
}
