//! Truth and order of values.

use std::cmp::Ordering;

use serde_json::{Number, Value};

use super::format::kind;

/// Whether a value is neither empty nor zero.
pub(super) fn is_true(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(value) => *value,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(map) => !map.is_empty(),
    }
}

/// Whether values are equal. Nothing is equal to null but null.
pub(super) fn is_equal(one: &Value, other: &Value) -> Result<bool, String> {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => Ok(numbers(one, other) == Some(Ordering::Equal)),
        (Value::Null, _) | (_, Value::Null) => Ok(one == other),
        _ if std::mem::discriminant(one) != std::mem::discriminant(other) => Err(incompatible(one, other)),
        _ => Ok(one == other),
    }
}

/// The order of two numbers or two strings.
pub(super) fn order(one: &Value, other: &Value) -> Result<Ordering, String> {
    let order = match (one, other) {
        (Value::Number(one), Value::Number(other)) => numbers(one, other),
        (Value::String(one), Value::String(other)) => Some(one.cmp(other)),
        _ => None,
    };
    order.ok_or_else(|| incompatible(one, other))
}

fn numbers(one: &Number, other: &Number) -> Option<Ordering> {
    match (one.as_i64(), other.as_i64()) {
        (Some(one), Some(other)) => Some(one.cmp(&other)),
        _ => one.as_f64()?.partial_cmp(&other.as_f64()?),
    }
}

fn incompatible(one: &Value, other: &Value) -> String {
    format!("{} and {} cannot be compared", kind(one), kind(other))
}
