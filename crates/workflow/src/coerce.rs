//! Texts that templates rendered, as values of the type that is needed.

use serde_json::{Number, Value};

use crate::parameters::types;

/// How deep arguments are compared with a schema.
const DEPTH: usize = 32;

/// The value as its schema needs it. One that does not fit stays as it is: the tool decides about it.
pub(crate) fn by_schema(value: Value, schema: &Value, depth: usize) -> Value {
    if depth > DEPTH {
        return value;
    }
    let value = match value {
        Value::String(text) if !types(schema).contains(&"string") => {
            let parsed = types(schema).iter().find_map(|name| parsed(&text, name));
            match parsed {
                Some(parsed) => return parsed,
                None => Value::String(text),
            }
        }
        other => other,
    };
    match value {
        Value::Object(map) => {
            let of = |name: &str| schema.get("properties").and_then(|properties| properties.get(name));
            let fields = map.into_iter().map(|(name, value)| match of(&name) {
                Some(schema) => (name, by_schema(value, schema, depth + 1)),
                None => (name, value),
            });
            Value::Object(fields.collect())
        }
        Value::Array(items) => match schema.get("items") {
            Some(schema) => items.into_iter().map(|item| by_schema(item, schema, depth + 1)).collect(),
            None => Value::Array(items),
        },
        other => other,
    }
}

/// The text as a value of this JSON type, if it is one.
pub(crate) fn parsed(text: &str, type_: &str) -> Option<Value> {
    let text = text.trim();
    match type_ {
        "string" => Some(text.into()),
        "integer" => text.parse::<i64>().ok().map(Value::from).or_else(|| whole(text)),
        "number" => text
            .parse::<i64>()
            .ok()
            .map(Value::from)
            .or_else(|| text.parse().ok().and_then(Number::from_f64).map(Value::Number)),
        "boolean" => boolean(text).map(Value::Bool),
        "array" => serde_json::from_str(text).ok().filter(Value::is_array),
        "object" => serde_json::from_str(text).ok().filter(Value::is_object),
        "null" => (text == "null").then_some(Value::Null),
        _ => None,
    }
}

/// A whole number that is written with an exponent or with decimals.
fn whole(text: &str) -> Option<Value> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let number: f64 = text.parse().ok()?;
    (number.fract() == 0.0 && number.abs() <= EXACT).then(|| Value::from(number as i64))
}

/// The spellings of a boolean.
pub(crate) fn boolean(text: &str) -> Option<bool> {
    match text.trim() {
        "true" | "True" | "TRUE" => Some(true),
        "false" | "False" | "FALSE" => Some(false),
        _ => None,
    }
}
