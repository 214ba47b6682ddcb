//! How several writers share a list: the markers of server-side apply, to be used as
//! `#[schemars(transform = list::atomic)]`.

use schemars::Schema;
use serde_json::json;

/// One owner for the whole list; its order counts.
pub fn atomic(schema: &mut Schema) {
    mark(schema, "atomic", None);
}

/// A set of scalars; each owner keeps its own members.
pub fn set(schema: &mut Schema) {
    mark(schema, "set", None);
}

/// Items known by their `name`.
pub fn by_name(schema: &mut Schema) {
    mark(schema, "map", Some(&["name"]));
}

/// Items known by their `type`.
pub fn by_type(schema: &mut Schema) {
    mark(schema, "map", Some(&["type"]));
}

/// Items known by their `headerName`.
pub fn by_header_name(schema: &mut Schema) {
    mark(schema, "map", Some(&["headerName"]));
}

/// Items known by their `kind` and `name`.
pub fn by_kind_and_name(schema: &mut Schema) {
    mark(schema, "map", Some(&["kind", "name"]));
}

fn mark(schema: &mut Schema, kind: &str, keys: Option<&[&str]>) {
    schema.insert("x-kubernetes-list-type".into(), kind.into());
    if let Some(keys) = keys {
        schema.insert("x-kubernetes-list-map-keys".into(), json!(keys));
    }
}
