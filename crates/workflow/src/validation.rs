//! Values are checked by their JSON Schema (2020-12). The keywords that only annotate, and those that need more than the value
//! itself, are not considered.

use regex::RegexBuilder;
use serde_json::{Map, Value};

use crate::schema::{DEPTH, Document, types};

/// The memory of a pattern.
const PATTERN: usize = 1 << 20;

/// Checks a value. The error names the field.
pub(crate) fn check(value: &Value, schema: &Value, field: &str) -> Result<(), String> {
    Validation(Document::new(schema)).check(value, schema, field, 0)
}

struct Validation<'a>(Document<'a>);

impl Validation<'_> {
    fn check(&self, value: &Value, schema: &Value, field: &str, depth: usize) -> Result<(), String> {
        if depth > DEPTH || !self.0.step() {
            return Err(format!("{field} is nested too deeply to be checked"));
        }
        if schema == &Value::Bool(false) {
            return Err(format!("{field} is not allowed"));
        }
        if let Some(schema) = self.0.referenced(schema) {
            self.check(value, schema, field, depth + 1)?;
        }
        check_type(value, schema, field)?;
        match value {
            Value::Object(map) => self.check_object(map, schema, field, depth)?,
            Value::Array(items) => self.check_array(items, schema, field, depth)?,
            Value::String(text) => check_text(text, schema, field)?,
            Value::Number(_) => check_number(value, schema, field)?,
            Value::Null | Value::Bool(_) => {}
        }
        self.check_branches(value, schema, field, depth)
    }

    fn check_branches(&self, value: &Value, schema: &Value, field: &str, depth: usize) -> Result<(), String> {
        let listed = |name: &str| schema.get(name).and_then(Value::as_array);
        let checked = |schema: &Value| self.check(value, schema, field, depth + 1);
        listed("allOf").into_iter().flatten().try_for_each(checked)?;
        for (name, one_only) in [("anyOf", false), ("oneOf", true)] {
            let Some(schemas) = listed(name) else { continue };
            let results: Vec<_> = schemas.iter().map(checked).collect();
            let fitting = results.iter().filter(|result| result.is_ok()).count();
            match results.into_iter().find_map(Result::err) {
                // Of a single alternative, the reason is known.
                Some(error) if fitting == 0 && schemas.len() == 1 => return Err(error),
                _ if fitting == 0 => return Err(format!("{field} fits none of the alternatives of {name}")),
                _ if one_only && fitting > 1 => {
                    return Err(format!("{field} fits several of the alternatives of {name}"));
                }
                _ => {}
            }
        }
        if schema.get("not").is_some_and(|schema| checked(schema).is_ok()) {
            return Err(format!("{field} has a value that is excluded"));
        }
        if let Some(condition) = schema.get("if") {
            let then = if checked(condition).is_ok() { "then" } else { "else" };
            schema.get(then).map_or(Ok(()), checked)?;
        }
        Ok(())
    }

    fn check_object(
        &self,
        map: &Map<String, Value>,
        schema: &Value,
        field: &str,
        depth: usize,
    ) -> Result<(), String> {
        let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
        if let Some(missing) = required.filter_map(Value::as_str).find(|name| !map.contains_key(*name)) {
            return Err(format!("{field}.{missing} is required"));
        }
        check_count(map.len(), schema, ("minProperties", "maxProperties"), field, "field")?;
        let named = |keyword: &str| schema.get(keyword).and_then(Value::as_object);
        for (name, value) in map {
            let field = format!("{field}.{name}");
            let mut is_known = false;
            if let Some(property) = named("properties").and_then(|properties| properties.get(name)) {
                is_known = true;
                self.check(value, property, &field, depth + 1)?;
            }
            for (pattern, property) in named("patternProperties").into_iter().flatten() {
                if is_match(pattern, name) == Some(true) {
                    is_known = true;
                    self.check(value, property, &field, depth + 1)?;
                }
            }
            match schema.get("additionalProperties").filter(|_| !is_known) {
                Some(Value::Bool(false)) => return Err(format!("{field} is unknown")),
                Some(others) => self.check(value, others, &field, depth + 1)?,
                None => {}
            }
        }
        Ok(())
    }

    fn check_array(&self, items: &[Value], schema: &Value, field: &str, depth: usize) -> Result<(), String> {
        check_count(items.len(), schema, ("minItems", "maxItems"), field, "item")?;
        let first = schema.get("prefixItems").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        for (index, item) in items.iter().enumerate() {
            // In older dialects, a list of schemas is what prefixItems is now.
            let rest = || schema.get("items").filter(|schema| !schema.is_array());
            if let Some(schema) = first.get(index).or_else(rest) {
                self.check(item, schema, &format!("{field}[{index}]"), depth + 1)?;
            }
        }
        let is_repeated =
            |(index, item): (usize, &Value)| items.iter().take(index).any(|one| equal(one, item));
        if schema.get("uniqueItems") == Some(&Value::Bool(true)) {
            if items.len() > UNIQUE {
                return Err(format!("{field} has too many items to be checked"));
            }
            if items.iter().enumerate().any(is_repeated) {
                return Err(format!("{field} has an item twice"));
            }
        }
        Ok(())
    }
}

/// How many items are compared with each other.
const UNIQUE: usize = 1_000;

fn check_type(value: &Value, schema: &Value, field: &str) -> Result<(), String> {
    let types: Vec<&str> = types(schema);
    if !types.is_empty() && !types.iter().any(|name| has_type(value, name)) {
        return Err(format!("{field} must be of type {}", types.join(" or ")));
    }
    let allowed = schema.get("enum").and_then(Value::as_array);
    if let Some(allowed) = allowed.filter(|all| !all.iter().any(|one| equal(one, value))) {
        let allowed: Vec<_> = allowed.iter().map(Value::to_string).collect();
        return Err(format!("{field} must be one of {}", allowed.join(", ")));
    }
    match schema.get("const").filter(|constant| !equal(constant, value)) {
        Some(constant) => Err(format!("{field} must be {constant}")),
        None => Ok(()),
    }
}

fn check_text(text: &str, schema: &Value, field: &str) -> Result<(), String> {
    check_count(text.chars().count(), schema, ("minLength", "maxLength"), field, "character")?;
    let pattern = schema.get("pattern").and_then(Value::as_str);
    match pattern.filter(|pattern| is_match(pattern, text) == Some(false)) {
        Some(pattern) => Err(format!("{field} must match {pattern}")),
        None => Ok(()),
    }
}

fn check_number(value: &Value, schema: &Value, field: &str) -> Result<(), String> {
    type Violates = fn(f64, f64) -> bool;
    let bounds: [(&str, &str, Violates); 4] = [
        ("minimum", "at least", |number, bound| number < bound),
        ("maximum", "at most", |number, bound| number > bound),
        ("exclusiveMinimum", "more than", |number, bound| number <= bound),
        ("exclusiveMaximum", "less than", |number, bound| number >= bound),
    ];
    let number = value.as_f64().unwrap_or(f64::NAN);
    for (name, words, violates) in bounds {
        if let Some(bound) = schema.get(name)
            && bound.as_f64().is_some_and(|bound| violates(number, bound))
        {
            return Err(format!("{field} must be {words} {bound}"));
        }
    }
    match schema.get("multipleOf").filter(|divisor| !is_multiple(number, divisor)) {
        Some(divisor) => Err(format!("{field} must be a multiple of {divisor}")),
        None => Ok(()),
    }
}

/// Decimals are not exact: 0.3 is a multiple of 0.1.
fn is_multiple(number: f64, divisor: &Value) -> bool {
    const INEXACT: f64 = 1e-9;
    let Some(divisor) = divisor.as_f64().filter(|divisor| *divisor > 0.0) else { return true };
    let quotient = number / divisor;
    (quotient - quotient.round()).abs() <= INEXACT
}

fn check_count(
    count: usize,
    schema: &Value,
    (least, most): (&str, &str),
    field: &str,
    noun: &str,
) -> Result<(), String> {
    let counted = |count: usize| format!("{count} {noun}{}", if count == 1 { "" } else { "s" });
    let bound = |name: &str| {
        schema.get(name).and_then(Value::as_u64).map(|bound| usize::try_from(bound).unwrap_or(usize::MAX))
    };
    match (bound(least), bound(most)) {
        (Some(least), _) if count < least => Err(format!("{field} must have at least {}", counted(least))),
        (_, Some(most)) if count > most => Err(format!("{field} must have at most {}", counted(most))),
        _ => Ok(()),
    }
}

/// Whether a text has a match. `None`: the pattern is not one that can be matched in linear time.
fn is_match(pattern: &str, text: &str) -> Option<bool> {
    let pattern = RegexBuilder::new(pattern).size_limit(PATTERN).dfa_size_limit(PATTERN).build().ok()?;
    Some(pattern.is_match(text))
}

/// Whether values are equal: numbers are, however they are spelled.
fn equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => left == right || left.as_f64() == right.as_f64(),
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| equal(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            let has =
                |(name, value): (&String, &Value)| right.get(name).is_some_and(|other| equal(value, other));
            left.len() == right.len() && left.iter().all(has)
        }
        _ => left == right,
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

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use serde_json::json;

    use super::*;

    #[test]
    fn every_keyword_has_its_effect() {
        let none = json!({});
        for (schema, right, wrong, error) in [
            (json!({"type": "integer"}), json!(1), json!(1.5), "x must be of type integer"),
            (json!({"enum": [1, "a"]}), json!(1.0), json!("b"), r#"x must be one of 1, "a""#),
            (json!({"const": {"a": [1]}}), json!({"a": [1.0]}), json!({"a": []}), r#"x must be {"a":[1]}"#),
            (json!({"minimum": 1}), json!(1), json!(0.9), "x must be at least 1"),
            (json!({"maximum": 1}), json!(1), json!(1.1), "x must be at most 1"),
            (json!({"exclusiveMinimum": 1}), json!(2), json!(1), "x must be more than 1"),
            (json!({"exclusiveMaximum": 1}), json!(0), json!(1), "x must be less than 1"),
            (json!({"multipleOf": 0.1}), json!(0.3), json!(0.25), "x must be a multiple of 0.1"),
            (json!({"minLength": 2}), json!("éé"), json!("é"), "x must have at least 2 characters"),
            (json!({"maxLength": 1}), json!("é"), json!("éé"), "x must have at most 1 character"),
            (json!({"pattern": "^a+$"}), json!("aa"), json!("ab"), "x must match ^a+$"),
            (json!({"minItems": 1}), json!([1]), json!([]), "x must have at least 1 item"),
            (json!({"maxItems": 1}), json!([1]), json!([1, 2]), "x must have at most 1 item"),
            (json!({"uniqueItems": true}), json!([1, 2]), json!([1, 1.0]), "x has an item twice"),
            (json!({"items": {"type": "null"}}), json!([null]), json!([1]), "x[0] must be of type null"),
            (
                json!({"prefixItems": [true], "items": {"type": "null"}}),
                json!([1, null]),
                json!([1, 2]),
                "x[1] must be of type null",
            ),
            (json!({"minProperties": 1}), json!({"a": 1}), none.clone(), "x must have at least 1 field"),
            (json!({"maxProperties": 0}), none.clone(), json!({"a": 1}), "x must have at most 0 fields"),
            (json!({"required": ["a"]}), json!({"a": 1}), none.clone(), "x.a is required"),
            (
                json!({"properties": {"a": {"type": "null"}}}),
                json!({"b": 1}),
                json!({"a": 1}),
                "x.a must be of type null",
            ),
            (
                json!({"properties": {"a": true}, "patternProperties": {"^p": true}, "additionalProperties": false}),
                json!({"a": 1, "p1": 2}),
                json!({"b": 1}),
                "x.b is unknown",
            ),
            (
                json!({"additionalProperties": {"type": "null"}}),
                json!({"a": null}),
                json!({"a": 1}),
                "x.a must be of type null",
            ),
            (json!({"allOf": [{"minimum": 1}, {"maximum": 2}]}), json!(2), json!(3), "x must be at most 2"),
            (
                json!({"anyOf": [{"type": "integer"}, {"type": "null"}]}),
                json!(null),
                json!("a"),
                "x fits none of the alternatives of anyOf",
            ),
            (
                json!({"oneOf": [{"minimum": 1}, {"maximum": 2}]}),
                json!(3),
                json!(2),
                "x fits several of the alternatives of oneOf",
            ),
            (json!({"not": {"const": 1}}), json!(2), json!(1), "x has a value that is excluded"),
            (
                json!({"if": {"minimum": 10}, "then": {"multipleOf": 10}, "else": {"maximum": 5}}),
                json!(20),
                json!(6),
                "x must be at most 5",
            ),
            (
                json!({"$ref": "#/$defs/a", "maximum": 5, "$defs": {"a": {"minimum": 1}}}),
                json!(3),
                json!(0),
                "x must be at least 1",
            ),
            // Since 2019-09, what is beside a reference counts as well.
            (
                json!({"$ref": "#/$defs/a", "maximum": 5, "$defs": {"a": {"minimum": 1}}}),
                json!(3),
                json!(6),
                "x must be at most 5",
            ),
            (json!({"properties": {"a": false}}), none, json!({"a": 1}), "x.a is not allowed"),
        ] {
            assert_eq!(check(&right, &schema, "x"), Ok(()), "{schema}");
            assert_eq!(check(&wrong, &schema, "x"), Err(error.to_owned()), "{schema}");
        }
    }

    #[test]
    fn a_pattern_that_needs_backtracking_is_not_considered() {
        assert_eq!(check(&json!("b"), &json!({"pattern": "(?=a)"}), "x"), Ok(()));
        let huge = json!({"pattern": "a{1000}{1000}"});
        assert_eq!(check(&json!("b"), &huge, "x"), Ok(()));
    }

    #[test]
    fn a_schema_that_refers_to_itself_in_many_ways_takes_bounded_time() {
        let twice = json!([{"$ref": "#"}, {"$ref": "#"}, {"$ref": "#"}]);
        let mut value = json!(1);
        for _ in 0..DEPTH - 1 {
            value = json!([value, 1]);
        }
        let started = Instant::now();
        for keyword in ["anyOf", "allOf", "oneOf"] {
            check(&json!(1), &json!({keyword: twice}), "x").unwrap_err();
        }
        check(&value, &json!({"items": {"anyOf": twice}}), "x").unwrap_err();
        assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
    }
}
