//! JSON Schemas, of the dialect that MCP uses (2020-12): whether each keyword has the type that it must have.

use std::fmt::Display;

use serde_json::{Map, Value};

use super::problem::{Cause, Problems, quoted};

const TYPES: [&str; 7] = ["array", "boolean", "integer", "null", "number", "object", "string"];
/// How deep a schema may be. Deeper ones are mistakes, or meant to harm.
const DEEPEST: usize = 32;

/// Checks a schema and all within it.
pub(super) fn check(place: impl Display, schema: &Map<String, Value>, problems: &mut Problems) {
    Check { root: schema, problems }.object(&place.to_string(), schema, 0);
}

/// How many levels of schemas are within one another.
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
    problems: &'a mut Problems,
}

impl Check<'_> {
    fn add(&mut self, place: impl Display, message: impl Display) {
        self.problems.add(Cause::Schema, place, message);
    }

    fn schema(&mut self, place: &str, value: &Value, depth: usize) {
        match value {
            Value::Bool(_) => {}
            Value::Object(schema) if depth < DEEPEST => self.object(place, schema, depth + 1),
            Value::Object(_) => self.add(place, format!("schemas can be {DEEPEST} levels deep")),
            _ => self.add(place, "a schema is an object, or true or false"),
        }
    }

    fn object(&mut self, place: &str, schema: &Map<String, Value>, depth: usize) {
        for (keyword, value) in schema {
            let place = format!("{place}.{keyword}");
            match keyword.as_str() {
                "type" => self.type_(&place, value),
                "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas" => {
                    self.schemas_by_name(&place, value, depth);
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
                    self.schema(&place, value, depth);
                }
                // In older dialects it can be a list as well.
                "items" if value.is_array() => self.schemas(&place, value, depth),
                "items" => self.schema(&place, value, depth),
                "prefixItems" | "allOf" | "anyOf" | "oneOf" => self.schemas(&place, value, depth),
                "required" => self.names(&place, value),
                "enum" if !value.is_array() => self.add(place, "it must be a list of values"),
                "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties"
                | "minContains" | "maxContains"
                    if value.as_u64().is_none() =>
                {
                    self.add(place, format!("{value} is not a whole number from 0"));
                }
                "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" if !value.is_number() => {
                    self.add(place, format!("{value} is not a number"));
                }
                "multipleOf" if value.as_f64().is_none_or(|number| number <= 0.0) => {
                    self.add(place, format!("{value} is not a number above 0"));
                }
                "pattern" | "format" | "title" | "description" | "$id" | "$schema" | "$anchor"
                | "$comment"
                    if !value.is_string() =>
                {
                    self.add(place, format!("{value} is not a text"));
                }
                "uniqueItems" | "deprecated" | "readOnly" | "writeOnly" if !value.is_boolean() => {
                    self.add(place, format!("{value} is neither true nor false"));
                }
                "$ref" => self.reference(&place, value),
                _ => {}
            }
        }
    }

    fn type_(&mut self, place: &str, value: &Value) {
        let known = |value: &Value| value.as_str().is_some_and(|name| TYPES.contains(&name));
        let fine = match value {
            Value::Array(names) => !names.is_empty() && names.iter().all(known),
            name => known(name),
        };
        if !fine {
            self.add(place, format!("{value} is not a type: the types are {}", TYPES.join(", ")));
        }
    }

    fn schemas_by_name(&mut self, place: &str, value: &Value, depth: usize) {
        match value.as_object() {
            Some(schemas) => {
                schemas
                    .iter()
                    .for_each(|(name, schema)| self.schema(&format!("{place}.{name}"), schema, depth));
            }
            None => self.add(place, "it must be an object of schemas"),
        }
    }

    fn schemas(&mut self, place: &str, value: &Value, depth: usize) {
        match value.as_array().filter(|schemas| !schemas.is_empty()) {
            Some(schemas) => {
                let schemas = schemas.iter().enumerate();
                schemas.for_each(|(index, schema)| self.schema(&format!("{place}[{index}]"), schema, depth));
            }
            None => self.add(place, "it must be a list of schemas"),
        }
    }

    fn names(&mut self, place: &str, value: &Value) {
        if value.as_array().is_none_or(|names| !names.iter().all(Value::is_string)) {
            self.add(place, "it must be a list of names");
        }
    }

    fn reference(&mut self, place: &str, value: &Value) {
        let Some(reference) = value.as_str() else {
            return self.add(place, format!("{value} is not a text"));
        };
        let Some(pointer) = reference.strip_prefix('#') else {
            return self.add(place, format!("{} is elsewhere: put it under $defs", quoted(reference)));
        };
        let mut here = if pointer.is_empty() { Some(self.root) } else { None };
        if let Some((first, rest)) =
            pointer.strip_prefix('/').map(|path| path.split_once('/').unwrap_or((path, "")))
        {
            let within = self.root.get(&first.replace("~1", "/").replace("~0", "~"));
            let rest = if rest.is_empty() { String::new() } else { format!("/{rest}") };
            here = within.and_then(|value| value.pointer(&rest)).and_then(Value::as_object);
        }
        if here.is_none() {
            self.add(place, format!("{} leads nowhere", quoted(reference)));
        }
    }
}
