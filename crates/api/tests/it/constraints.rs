//! The constraints of a schema, field by field, and values that violate them.

use regex::Regex;
use serde_json::{Value, json};

/// One step from an object to a part of it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Step {
    Field(String),
    Item,
    Entry,
}

impl Step {
    pub(crate) fn join(path: &[Self]) -> String {
        let steps = path.iter().map(|step| match step {
            Self::Field(name) => format!(".{name}"),
            Self::Item => "[]".into(),
            Self::Entry => "[*]".into(),
        });
        steps.collect::<String>().trim_start_matches('.').into()
    }
}

/// Calls `visit` for each field that a schema has, with the field's own schema.
pub(crate) fn walk(schema: &Value, visit: &mut impl FnMut(&[Step], &Value)) {
    descend(schema, &mut Vec::new(), visit);
}

fn descend(schema: &Value, path: &mut Vec<Step>, visit: &mut impl FnMut(&[Step], &Value)) {
    visit(path, schema);
    let fields = schema["properties"].as_object().into_iter().flatten();
    let fields = fields.map(|(name, schema)| (Step::Field(name.clone()), schema));
    let items = schema.get("items").map(|schema| (Step::Item, schema));
    let entries = schema.get("additionalProperties").map(|schema| (Step::Entry, schema));
    for (step, schema) in fields.chain(items).chain(entries) {
        path.push(step);
        descend(schema, path, visit);
        path.pop();
    }
}

/// One constraint of a schema, with a value just outside it and, where there is one, a value just inside.
pub(crate) struct Demand {
    pub(crate) keyword: &'static str,
    pub(crate) outside: Value,
    pub(crate) inside: Option<Value>,
}

/// The enum, pattern, format and bounds of one field's schema. `value` is a valid value of the field, to start from.
pub(crate) fn demands(schema: &Value, value: &Value) -> Vec<Demand> {
    let bound = |keyword: &str| schema[keyword].as_f64().map(|bound| bound as i64);
    // Any string is valid where the schema has no further constraint.
    let any_text = schema.get("pattern").is_none() && schema.get("format").is_none();
    let text = |length: i64| json!("x".repeat(usize::try_from(length).unwrap()));
    let mut demands = Vec::new();
    let mut demand = |keyword, outside, inside| demands.push(Demand { keyword, outside, inside });
    if let Some(values) = schema["enum"].as_array() {
        demand("enum", json!("no-such-value"), values.last().cloned());
    }
    if let Some(pattern) = schema["pattern"].as_str() {
        demand("pattern", mismatch(pattern), None);
    }
    if let Some("date-time" | "uri" | "duration") = schema["format"].as_str() {
        demand("format", json!("%%%"), None);
    }
    if let Some(minimum) = bound("minimum") {
        demand("minimum", json!(minimum - 1), Some(json!(minimum)));
    }
    if let Some(maximum) = bound("maximum") {
        demand("maximum", json!(maximum + 1), Some(json!(maximum)));
    }
    if let Some(minimum) = bound("minLength") {
        demand("minLength", text(minimum - 1), any_text.then(|| text(minimum)));
    }
    if let Some(maximum) = bound("maxLength") {
        demand("maxLength", text(maximum + 1), any_text.then(|| text(maximum)));
    }
    if let Some(minimum) = bound("minItems") {
        demand("minItems", Value::Array(items(value, minimum - 1)), None);
    }
    if let Some(maximum) = bound("maxItems") {
        let inside = Value::Array(items(value, maximum));
        demand("maxItems", Value::Array(items(value, maximum + 1)), Some(inside));
    }
    if let Some(maximum) = bound("maxProperties") {
        demand("maxProperties", entries(value, maximum + 1), Some(entries(value, maximum)));
    }
    demands
}

fn mismatch(pattern: &str) -> Value {
    let regex = Regex::new(pattern).unwrap_or_else(|error| panic!("{pattern}: {error}"));
    let candidates = ["%", "-", "*", "ftp://x", "\u{1}", " "];
    let mismatch = candidates.iter().find(|candidate| !regex.is_match(candidate));
    json!(mismatch.unwrap_or_else(|| panic!("no string that violates {pattern} is known: add one")))
}

fn items(value: &Value, count: i64) -> Vec<Value> {
    let first = value.get(0).unwrap_or_else(|| panic!("a list with an item, not {value}"));
    vec![first.clone(); usize::try_from(count).unwrap()]
}

fn entries(value: &Value, count: i64) -> Value {
    let first = value.as_object().and_then(|map| map.values().next());
    let first = first.unwrap_or_else(|| panic!("a map with an entry, not {value}"));
    (0..count).map(|number| (format!("key-{number}"), first.clone())).collect()
}
