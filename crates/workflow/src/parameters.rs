//! The arguments of a workflow, by their JSON Schema.

use serde_json::{Map, Value};

use crate::validation::check;

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
    check(&value, schema, "arguments")?;
    match value {
        Value::Object(arguments) => Ok(arguments),
        _ => Ok(Map::new()),
    }
}
