//! What server-side apply cannot correct by itself.
//!
//! A Service's ports are identified by number, and must have unique names. When another writer changes the number of
//! our port, it becomes an element of theirs, which an apply leaves alone; ours cannot be added, because it has the
//! same name. So the whole list is first replaced by ours, under the condition that the object has not changed
//! meanwhile.

use k8s_openapi::api::core::v1::Service;
use serde_json::{Value, json};

use crate::{Child, Kind, Meta};

/// The patch after which an apply of the child succeeds, if there is one for its kind.
pub(crate) fn reclaim(child: &Child, seen: &Meta) -> Option<Value> {
    let ports = child.body()["spec"].get("ports")?;
    (child.kind == Kind::of::<Service>()).then(|| {
        json!([
            {"op": "test", "path": "/metadata/resourceVersion", "value": seen.resource_version},
            {"op": "replace", "path": "/spec/ports", "value": ports},
        ])
    })
}
