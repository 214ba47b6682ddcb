//! The claims of a token as CEL sees them.

use std::{collections::HashMap, sync::Arc};

use cel::{
    Value,
    objects::{Key, Map as CelMap},
};
use serde_json::{Map, Number, Value as Json};

/// Whole numbers up to here are the same as doubles.
const EXACT: u64 = 1 << 53;

pub(super) fn map(fields: &Map<String, Json>) -> CelMap {
    let fields = fields.iter().map(|(name, claim)| (Key::String(Arc::new(name.clone())), value(claim)));
    CelMap { map: Arc::new(fields.collect::<HashMap<_, _>>()) }
}

fn value(claim: &Json) -> Value {
    match claim {
        Json::Null => Value::Null,
        Json::Bool(value) => Value::Bool(*value),
        Json::Number(value) => number(value),
        Json::String(text) => Value::String(Arc::new(text.clone())),
        Json::Array(items) => Value::List(Arc::new(items.iter().map(value).collect())),
        Json::Object(fields) => Value::Map(map(fields)),
    }
}

/// A double, as CEL defines for JSON; but an integer where a double would lose digits.
fn number(number: &Number) -> Value {
    match (number.as_i64(), number.as_u64()) {
        (Some(whole), _) if whole.unsigned_abs() > EXACT => Value::Int(whole),
        (None, Some(whole)) => Value::UInt(whole),
        _ => number.as_f64().map_or(Value::Null, Value::Float),
    }
}

/// What a value is, for people.
pub(super) fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Int(_) | Value::UInt(_) | Value::Float(_) => "a number",
        Value::String(_) => "a text",
        Value::List(_) => "a list",
        Value::Map(_) => "a map",
        _ => "another value",
    }
}
