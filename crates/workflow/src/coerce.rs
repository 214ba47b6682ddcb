//! Texts that templates rendered, as values of the type that is needed.

use serde_json::{Number, Value};
use skep_mcp::tree_size;

use crate::schema::{DEPTH, Document};

/// The value as its schema needs it. One that does not fit stays as it is: the tool decides about it.
pub(crate) fn by_schema(value: Value, schema: &Value) -> Value {
    coerced(value, &[schema], &Document::new(schema), 0, &mut TreeBudget::default())
}

/// The value as one of these schemas needs it.
fn coerced<'a>(
    value: Value,
    schemas: &[&'a Value],
    document: &Document<'a>,
    depth: usize,
    trees: &mut TreeBudget,
) -> Value {
    if depth > DEPTH || schemas.is_empty() {
        return value;
    }
    let value = match value {
        Value::String(text) => {
            let types = document.types_of_any(schemas, 0).filter(|types| !types.contains(&"string"));
            let parsed = types.into_iter().flatten().find_map(|name| parsed(&text, name, trees));
            match parsed {
                Some(parsed) => return parsed,
                None => Value::String(text),
            }
        }
        other => other,
    };
    match value {
        Value::Object(map) => {
            let schemas = document.branches(schemas);
            let others: Vec<_> = keyword(&schemas, "additionalProperties").collect();
            let fields = map.into_iter().map(|(name, value)| {
                let own: Vec<_> = keyword(&schemas, "properties").filter_map(|all| all.get(&name)).collect();
                let schemas = if own.is_empty() { &others } else { &own };
                let value = coerced(value, schemas, document, depth + 1, trees);
                (name, value)
            });
            Value::Object(fields.collect())
        }
        Value::Array(items) => {
            let schemas = document.branches(schemas);
            let others: Vec<_> = keyword(&schemas, "items").collect();
            let items = items.into_iter().enumerate().map(|(index, item)| {
                let own: Vec<_> = keyword(&schemas, "prefixItems").filter_map(|all| all.get(index)).collect();
                let schemas = if own.is_empty() { &others } else { &own };
                coerced(item, schemas, document, depth + 1, trees)
            });
            items.collect()
        }
        other => other,
    }
}

/// What these schemas have for a keyword.
fn keyword<'a>(schemas: &[&'a Value], name: &str) -> impl Iterator<Item = &'a Value> {
    schemas.iter().filter_map(move |schema| schema.get(name))
}

/// Memory that the trees of several texts share. A tree may take a hundred times as much as its text.
pub(crate) struct TreeBudget(usize);

impl Default for TreeBudget {
    fn default() -> Self {
        Self(16 << 20)
    }
}

impl TreeBudget {
    /// Takes the size of the tree of a text, and returns it. `None`: too much was taken.
    pub(crate) fn take(&mut self, text: &str) -> Option<usize> {
        let size = tree_size(text);
        self.0 = self.0.checked_sub(size)?;
        Some(size)
    }
}

/// The text as a value of this JSON type, if it is one.
pub(crate) fn parsed(text: &str, type_: &str, trees: &mut TreeBudget) -> Option<Value> {
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
        "array" | "object" => {
            let is_fit = if type_ == "array" { Value::is_array } else { Value::is_object };
            trees.take(text).and_then(|_| serde_json::from_str(text).ok()).filter(is_fit)
        }
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

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use serde_json::json;

    use super::*;

    #[test]
    fn texts_become_what_the_schema_needs_wherever_it_states_that() {
        let defs = json!({
            "Count": {"type": "integer"},
            "Maybe": {"anyOf": [{"$ref": "#/$defs/Count"}, {"type": "null"}]},
            "Loop": {"anyOf": [{"$ref": "#/$defs/Loop"}, {"$ref": "#/$defs/Loop"}]},
        });
        for (schema, text, expected) in [
            // As Pydantic writes an optional number.
            (json!({"anyOf": [{"type": "integer"}, {"type": "null"}], "default": null}), "5", json!(5)),
            (json!({"oneOf": [{"type": "boolean"}, {"type": "number"}]}), "true", json!(true)),
            (json!({"oneOf": [{"type": "boolean"}, {"type": "number"}]}), "1.5", json!(1.5)),
            (json!({"allOf": [{"type": "integer"}, {"minimum": 1}]}), "7", json!(7)),
            (json!({"allOf": [{"type": "number"}, {"type": "integer"}]}), "7", json!(7)),
            (json!({"$ref": "#/$defs/Count"}), "8", json!(8)),
            (json!({"$ref": "#/$defs/Maybe"}), "9", json!(9)),
            (json!({"enum": [1, 2]}), "2", json!(2)),
            (json!({"const": true}), "true", json!(true)),
            (
                json!({"anyOf": [{"type": "array", "items": {"type": "integer"}}, {"type": "null"}]}),
                "[1]",
                json!([1]),
            ),
            // A text is valid as it is.
            (json!({"anyOf": [{"type": "integer"}, {"type": "string"}]}), "5", json!("5")),
            (json!({"anyOf": [{"type": "integer"}, {}]}), "5", json!("5")),
            (json!({"type": ["integer", "string"]}), "5", json!("5")),
            (json!({}), "5", json!("5")),
            (json!({"$ref": "#/$defs/Loop"}), "5", json!("5")),
            (json!({"$ref": "#/missing"}), "5", json!("5")),
            (json!({"type": "integer"}), "many", json!("many")),
        ] {
            let whole = json!({"type": "object", "properties": {"x": schema}, "$defs": defs});
            let coerced = by_schema(json!({"x": text}), &whole);
            assert_eq!(coerced, json!({"x": expected}), "{schema}");
        }
    }

    #[test]
    fn parts_of_alternatives_are_found() {
        let schema = json!({
            "anyOf": [
                {"type": "object", "properties": {"n": {"type": "integer"}, "either": {"type": "integer"}}},
                {"type": "object", "properties": {"either": {"type": "string"}}},
                {"$ref": "#/$defs/Map"},
            ],
            "$defs": {"Map": {
                "properties": {"pair": {"prefixItems": [{"type": "boolean"}], "items": {"type": "number"}}},
                "additionalProperties": {"type": "number"},
            }},
        });
        let value = json!({"n": "1", "either": "2", "pair": ["true", "3"], "other": "4"});
        let expected = json!({"n": 1, "either": "2", "pair": [true, 3], "other": 4});
        assert_eq!(by_schema(value, &schema), expected);
    }

    #[test]
    fn the_texts_of_one_call_share_the_memory_of_their_trees() {
        let half = format!("[{}[0]]", "[0],".repeat((9 << 20) / tree_size("[0]")));
        let schema = json!({"additionalProperties": {"type": "array"}});
        let coerced = by_schema(json!({"a": half, "b": half, "c": "[1]"}), &schema);
        assert!(coerced["a"].is_array() && coerced["b"] == half && coerced["c"] == json!([1]));
    }

    /// The schema is a backend's, which may be hostile.
    #[test]
    fn a_schema_that_refers_to_itself_in_many_ways_takes_bounded_time() {
        let own = json!([{"$ref": "#"}, {"$ref": "#"}, {"$ref": "#"}]);
        let texts: Vec<_> = (0..1000).map(|number| number.to_string()).collect();
        let started = Instant::now();
        for name in ["allOf", "anyOf", "oneOf"] {
            let schema = json!({name: own, "items": {name: own, "items": {name: own}}});
            assert_eq!(by_schema(json!([texts]), &schema), json!([texts]));
        }
        assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
    }
}
