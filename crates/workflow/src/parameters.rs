//! Values and the JSON Schemas that describe them: required fields, types and enums.

use serde_json::{Map, Value};

/// How deep a value is compared with its schema.
const DEPTH: usize = 32;

/// The arguments with the defaults of their schema, or what is wrong with one of them.
pub(crate) fn checked(
    mut arguments: Map<String, Value>,
    schema: Option<&Value>,
) -> Result<Map<String, Value>, String> {
    let Some(schema) = schema else { return Ok(arguments) };
    for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        if let Some(default) = property.get("default").filter(|_| !arguments.contains_key(name)) {
            arguments.insert(name.clone(), default.clone());
        }
    }
    let value = Value::Object(arguments);
    check(&value, schema, schema, "arguments", 0)?;
    match value {
        Value::Object(arguments) => Ok(arguments),
        _ => Ok(Map::new()),
    }
}

/// Checks a value. The error names the field.
pub(crate) fn check(
    value: &Value,
    schema: &Value,
    root: &Value,
    field: &str,
    depth: usize,
) -> Result<(), String> {
    if depth > DEPTH {
        return Ok(());
    }
    if let Some(pointer) = schema.get("$ref").and_then(Value::as_str).and_then(|name| name.strip_prefix('#'))
    {
        return match root.pointer(pointer) {
            Some(schema) => check(value, schema, root, field, depth + 1),
            None => Ok(()),
        };
    }
    let types: Vec<&str> = types(schema);
    if !types.is_empty() && !types.iter().any(|name| has_type(value, name)) {
        return Err(format!("{field} must be of type {}", types.join(" or ")));
    }
    if let Some(allowed) = schema.get("enum").and_then(Value::as_array).filter(|all| !all.contains(value)) {
        let allowed: Vec<_> = allowed.iter().map(Value::to_string).collect();
        return Err(format!("{field} must be one of {}", allowed.join(", ")));
    }
    match value {
        Value::Object(map) => {
            let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
            if let Some(missing) = required.filter_map(Value::as_str).find(|name| !map.contains_key(*name)) {
                return Err(format!("{field}.{missing} is required"));
            }
            let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
            for (name, property) in properties {
                if let Some(value) = map.get(name) {
                    check(value, property, root, &format!("{field}.{name}"), depth + 1)?;
                }
            }
            Ok(())
        }
        Value::Array(items) => match schema.get("items").filter(|schema| schema.is_object()) {
            Some(schema) => items.iter().enumerate().try_for_each(|(index, item)| {
                check(item, schema, root, &format!("{field}[{index}]"), depth + 1)
            }),
            None => Ok(()),
        },
        _ => Ok(()),
    }
}

/// The types that a schema allows, or none if it allows all.
pub(crate) fn types(schema: &Value) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::String(name)) => vec![name],
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

fn has_type(value: &Value, name: &str) -> bool {
    match name {
        "integer" => value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|n| n.fract() == 0.0),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "null" => value.is_null(),
        _ => true,
    }
}
