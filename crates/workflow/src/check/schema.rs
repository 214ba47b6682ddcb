//! JSON Schemas of the dialect that MCP uses (2020-12): whether each keyword has the right type.

use std::fmt::Display;

use serde_json::{Map, Value};
use skep_config::FieldPath;

use super::error::{Cause, Errors, quoted};

const TYPES: [&str; 7] = ["array", "boolean", "integer", "null", "number", "object", "string"];
/// How deep schemas may be nested. Deeper ones are mistakes or attacks.
const MAX_DEPTH: usize = 32;

/// Checks a schema and its subschemas.
pub(super) fn check(field: impl Into<FieldPath>, schema: &Map<String, Value>, errors: &mut Errors) {
    Check { root: schema, errors }.object(&field.into(), schema, 0);
}

/// How deep a value is nested.
pub(super) fn depth(value: &Value) -> usize {
    let deepest = match value {
        Value::Object(map) => map.values().map(depth).max(),
        Value::Array(items) => items.iter().map(depth).max(),
        _ => return 0,
    };
    1 + deepest.unwrap_or_default()
}

struct Check<'a> {
    root: &'a Map<String, Value>,
    errors: &'a mut Errors,
}

impl Check<'_> {
    fn add(&mut self, field: FieldPath, message: impl Display) {
        self.errors.add(Cause::Schema, field, message);
    }

    fn schema(&mut self, field: &FieldPath, value: &Value, depth: usize) {
        match value {
            Value::Bool(_) => {}
            Value::Object(schema) if depth < MAX_DEPTH => self.object(field, schema, depth + 1),
            Value::Object(_) => self.add(field.clone(), format!("is nested deeper than {MAX_DEPTH} levels")),
            _ => self.add(field.clone(), "must be an object, true or false"),
        }
    }

    fn object(&mut self, field: &FieldPath, schema: &Map<String, Value>, depth: usize) {
        for (keyword, value) in schema {
            let field = field.clone().join(keyword.clone());
            match keyword.as_str() {
                "type" => self.type_(&field, value),
                "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas" => {
                    self.schemas_by_name(&field, value, depth);
                }
                "additionalProperties"
                | "not"
                | "if"
                | "then"
                | "else"
                | "contains"
                | "propertyNames"
                | "additionalItems"
                | "unevaluatedItems"
                | "unevaluatedProperties" => {
                    self.schema(&field, value, depth);
                }
                // In older dialects it can be a list as well.
                "items" if value.is_array() => self.schemas(&field, value, depth),
                "items" => self.schema(&field, value, depth),
                "prefixItems" | "allOf" | "anyOf" | "oneOf" => self.schemas(&field, value, depth),
                "required" => self.names(&field, value),
                "enum" if !value.is_array() => self.add(field, "must be a list of values"),
                "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties"
                | "minContains" | "maxContains"
                    if value.as_u64().is_none() =>
                {
                    self.add(field, format!("{value} is not a non-negative integer"));
                }
                "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" if !value.is_number() => {
                    self.add(field, format!("{value} is not a number"));
                }
                "multipleOf" if value.as_f64().is_none_or(|number| number <= 0.0) => {
                    self.add(field, format!("{value} is not a number above 0"));
                }
                "pattern" | "format" | "title" | "description" | "$id" | "$schema" | "$anchor"
                | "$comment"
                    if !value.is_string() =>
                {
                    self.add(field, format!("{value} is not a string"));
                }
                "uniqueItems" | "deprecated" | "readOnly" | "writeOnly" if !value.is_boolean() => {
                    self.add(field, format!("{value} is not a boolean"));
                }
                "$ref" => self.reference(&field, value),
                _ => {}
            }
        }
    }

    fn type_(&mut self, field: &FieldPath, value: &Value) {
        let is_known = |value: &Value| value.as_str().is_some_and(|name| TYPES.contains(&name));
        let is_valid = match value {
            Value::Array(names) => !names.is_empty() && names.iter().all(is_known),
            name => is_known(name),
        };
        if !is_valid {
            self.add(field.clone(), format!("{value} is not a type: use one of {}", TYPES.join(", ")));
        }
    }

    fn schemas_by_name(&mut self, field: &FieldPath, value: &Value, depth: usize) {
        match value.as_object() {
            Some(schemas) => {
                let schemas = schemas.iter();
                schemas.for_each(|(name, schema)| self.schema(&field.clone().key(name), schema, depth));
            }
            None => self.add(field.clone(), "must be an object of schemas"),
        }
    }

    fn schemas(&mut self, field: &FieldPath, value: &Value, depth: usize) {
        match value.as_array().filter(|schemas| !schemas.is_empty()) {
            Some(schemas) => {
                let schemas = schemas.iter().enumerate();
                schemas.for_each(|(index, schema)| self.schema(&field.clone().index(index), schema, depth));
            }
            None => self.add(field.clone(), "must be a list of schemas"),
        }
    }

    fn names(&mut self, field: &FieldPath, value: &Value) {
        if value.as_array().is_none_or(|names| !names.iter().all(Value::is_string)) {
            self.add(field.clone(), "must be a list of names");
        }
    }

    fn reference(&mut self, field: &FieldPath, value: &Value) {
        let Some(reference) = value.as_str() else {
            return self.add(field.clone(), format!("{value} is not a string"));
        };
        let Some(pointer) = reference.strip_prefix('#') else {
            let message = format!("{} is not in this schema: move it under $defs", quoted(reference));
            return self.add(field.clone(), message);
        };
        let mut target = if pointer.is_empty() { Some(self.root) } else { None };
        if let Some((first, rest)) =
            pointer.strip_prefix('/').map(|path| path.split_once('/').unwrap_or((path, "")))
        {
            let within = self.root.get(&first.replace("~1", "/").replace("~0", "~"));
            let rest = if rest.is_empty() { String::new() } else { format!("/{rest}") };
            target = within.and_then(|value| value.pointer(&rest)).and_then(Value::as_object);
        }
        if target.is_none() {
            self.add(field.clone(), format!("{} does not exist", quoted(reference)));
        }
    }
}
