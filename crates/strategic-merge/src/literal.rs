//! Parts of a patch that are not merged with anything.
//!
//! Such parts may still contain nulls and directives. The API server drops them when it decodes the merged object; here
//! they are dropped when the part is copied. The one difference is inside maps of scalars, such as the
//! `limits: {cpu: null}` of a new container or of a container's `$patch: replace`: the API server decodes the null as
//! a zero and a directive as a limit, here both are omitted, as everywhere else.

use serde_json::{Map, Value};

use crate::directive::{self, Key};

/// A field that the template does not have. A value with a `$patch` has no target, and is dropped.
pub(crate) fn new_field(value: &Value) -> Option<Value> {
    match value {
        Value::Null => None,
        Value::Object(fields) if fields.contains_key(directive::PATCH) => None,
        Value::Object(fields) => Some(Value::Object(members(fields, new_field))),
        Value::Array(items) => Some(items.iter().filter_map(new_field).collect()),
        scalar => Some(scalar.clone()),
    }
}

/// A value that is not merged, such as an item of a replaced list.
pub(crate) fn literal(value: &Value) -> Value {
    match value {
        Value::Object(fields) => Value::Object(literal_object(fields)),
        Value::Array(items) => items.iter().map(literal).collect(),
        scalar => scalar.clone(),
    }
}

/// An object that is not merged.
pub(crate) fn literal_object(fields: &Map<String, Value>) -> Map<String, Value> {
    members(fields, |value| (!value.is_null()).then(|| literal(value)))
}

fn members(fields: &Map<String, Value>, take: impl Fn(&Value) -> Option<Value>) -> Map<String, Value> {
    fields
        .iter()
        .filter(|(name, _)| matches!(Key::of(name), Key::Field))
        .filter_map(|(name, value)| Some((name.clone(), take(value)?)))
        .collect()
}
