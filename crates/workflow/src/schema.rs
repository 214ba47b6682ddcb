//! What the keywords of a JSON Schema mean together.

use std::cell::Cell;

use serde_json::Value;

/// How deep a value is compared with its schema.
pub(crate) const DEPTH: usize = 32;
/// How many schemas are looked at for one value with all its parts: a few that refer to each other can be reached by very many paths.
const STEPS: usize = 100_000;
/// How many of them are for the same part.
const BRANCHES: usize = 64;

/// A schema with all that it refers to.
pub(crate) struct Document<'a> {
    root: &'a Value,
    /// How many schemas may still be looked at.
    steps: Cell<usize>,
}

impl<'a> Document<'a> {
    pub(crate) fn new(root: &'a Value) -> Self {
        Self { root, steps: Cell::new(STEPS) }
    }

    /// Whether one more schema may be looked at.
    pub(crate) fn step(&self) -> bool {
        let left = self.steps.get().checked_sub(1);
        self.steps.set(left.unwrap_or_default());
        left.is_some()
    }

    /// What a `$ref` refers to, if it is within the same document.
    pub(crate) fn referenced(&self, schema: &Value) -> Option<&'a Value> {
        self.root.pointer(schema.get("$ref")?.as_str()?.strip_prefix('#')?)
    }

    /// The types that a value may have which fits one of these schemas, in their order. `None`: all.
    pub(crate) fn types_of_any(&self, schemas: &[&'a Value], depth: usize) -> Option<Vec<&'a str>> {
        let mut all = Vec::new();
        for schema in schemas {
            let more = self.allowed_types(schema, depth)?;
            all.extend(more.into_iter().filter(|name| !all.contains(name)).collect::<Vec<_>>());
        }
        Some(all)
    }

    fn allowed_types(&self, schema: &'a Value, depth: usize) -> Option<Vec<&'a str>> {
        if depth > DEPTH || !self.step() {
            return None;
        }
        let listed = |name: &str| schema.get(name).and_then(Value::as_array);
        let own = Some(types(schema)).filter(|types| !types.is_empty());
        let values = listed("enum").map(|values| values.iter().map(type_of).collect());
        let constant = schema.get("const").map(|value| vec![type_of(value)]);
        let any = ["anyOf", "oneOf"].map(|name| {
            let schemas: Vec<_> = listed(name)?.iter().collect();
            self.types_of_any(&schemas, depth + 1)
        });
        let all = listed("allOf").into_iter().flatten();
        let all = self.referenced(schema).into_iter().chain(all);
        let all = all.map(|schema| self.allowed_types(schema, depth + 1));
        [own, values, constant].into_iter().chain(any).chain(all).flatten().reduce(common)
    }

    /// These schemas, and all that they have for the same value: what they refer to, and their alternatives.
    pub(crate) fn branches(&self, schemas: &[&'a Value]) -> Vec<&'a Value> {
        let mut found = schemas.to_vec();
        let mut next = 0;
        while let Some(schema) = found.get(next).copied().filter(|_| self.step()) {
            let lists =
                ["allOf", "anyOf", "oneOf"].into_iter().filter_map(|name| schema.get(name)?.as_array());
            let more = self.referenced(schema).into_iter().chain(lists.flatten());
            let room = BRANCHES.saturating_sub(found.len());
            found.extend(more.take(room).collect::<Vec<_>>());
            next += 1;
        }
        found
    }
}

/// The types that the keyword `type` allows, or none if it allows all.
pub(crate) fn types(schema: &Value) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::String(name)) => vec![name],
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// The types that are in both lists.
fn common<'a>(left: Vec<&'a str>, right: Vec<&'a str>) -> Vec<&'a str> {
    let allows = |types: &[&str], name: &str| {
        types.contains(&name) || (name == "integer" && types.contains(&"number"))
    };
    let in_left = left.iter().filter(|name| allows(&right, name));
    let in_right = right.iter().filter(|name| !left.contains(name) && allows(&left, name));
    in_left.chain(in_right).copied().collect()
}
