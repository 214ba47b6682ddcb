//! Objects as JSON.

use std::borrow::Borrow;

use serde::Serialize;
use serde_json::Value;

/// An object with further fields, which replace those of the same name.
///
/// # Panics
/// If one of the two is not an object.
pub fn with_fields(mut base: Value, fields: impl Borrow<Value>) -> Value {
    let fields = fields.borrow().as_object().expect("the fields are an object").clone();
    base.as_object_mut().expect("the base is an object").extend(fields);
    base
}

/// The condition of this type in the status of an object, or null.
pub fn condition(object: &impl Serialize, type_: &str) -> Value {
    let object = serde_json::to_value(object).unwrap_or_default();
    let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    conditions.into_iter().find(|condition| condition["type"] == type_).cloned().unwrap_or_default()
}
