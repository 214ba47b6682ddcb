//! What server-side apply cannot put right by itself.
//!
//! A Service's ports are known by number, and must differ by name. When somebody gives our port another number, it
//! becomes an element of theirs, which an apply leaves alone; ours cannot stand beside it, because it has the same
//! name. So the list is first made ours as a whole, under the condition that nobody has written meanwhile.

use k8s_openapi::api::core::v1::Service;
use serde_json::{Value, json};

use crate::{Child, Kind, Meta};

/// The patch that lets an apply of the child through, if there is one for its kind.
pub(crate) fn reclaim(child: &Child, seen: &Meta) -> Option<Value> {
    let ports = child.body()["spec"].get("ports")?;
    (child.kind == Kind::of::<Service>()).then(|| {
        json!([
            {"op": "test", "path": "/metadata/resourceVersion", "value": seen.resource_version},
            {"op": "replace", "path": "/spec/ports", "value": ports},
        ])
    })
}
