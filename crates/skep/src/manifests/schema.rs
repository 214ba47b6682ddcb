//! The check of an object by the schema of its kind: fields, types, values and bounds. CEL rules are left to the API server.

use regex::Regex;
use serde_json::Value;
use skep_api::GROUP;
use skep_config::{FieldError, FieldPath};

/// How similar two names must be for one to be suggested for the other.
const MIN_SIMILARITY: f64 = 0.75;

/// Everything that is wrong.
pub(super) fn check(document: &Value, kind: &str, version: &str, crds: &[Value]) -> Vec<FieldError> {
    let name = |crd: &Value| crd["spec"]["names"]["kind"].as_str().unwrap_or_default().to_owned();
    let Some(crd) = crds.iter().find(|crd| name(crd) == kind) else {
        let all: Vec<String> = crds.iter().map(name).collect();
        let suggestion = suggestion(kind, all.iter().map(String::as_str));
        return vec![FieldError::new("kind", format!("unknown kind {kind} in {GROUP}{suggestion}"))];
    };
    let versions = crd["spec"]["versions"].as_array().into_iter().flatten();
    let served: Vec<&Value> = versions.filter(|version| version["served"] == true).collect();
    let Some(definition) = served.iter().find(|served| served["name"] == version) else {
        let names: Vec<&str> = served.iter().filter_map(|version| version["name"].as_str()).collect();
        let message = format!("unknown version {version} of {kind}: use {}", names.join(" or "));
        return vec![FieldError::new("apiVersion", message)];
    };
    let schema = &definition["schema"]["openAPIV3Schema"];
    let Value::Object(fields) = document else {
        return vec![FieldError::new("", format!("{kind} must be an object"))];
    };
    let mut errors = Vec::new();
    for (field, value) in fields {
        match field.as_str() {
            "apiVersion" | "kind" | "metadata" | "status" => {}
            _ => match schema["properties"].get(field) {
                Some(schema) => check_value(value, schema, &field.clone().into(), &mut errors),
                None => errors.push(unknown(field.clone().into(), field, schema)),
            },
        }
    }
    check_required(document, schema, &FieldPath::default(), &mut errors);
    errors
}

fn check_value(value: &Value, schema: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let mut fail = |message: String| errors.push(FieldError::new(path.clone(), message));
    if value.is_null() && schema["type"] == "array" {
        return fail("is empty: remove it, or write []".into());
    }
    // A null is the same as a missing field, which the types check.
    if value.is_null() || schema["x-kubernetes-int-or-string"] == true {
        return;
    }
    let fits = match schema["type"].as_str() {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("boolean") => value.is_boolean(),
        Some("integer") => value.is_i64() || value.is_u64(),
        Some("number") => value.is_number(),
        _ => true,
    };
    if !fits {
        let expected = schema["type"].as_str().unwrap_or_default();
        return fail(format!("must be {}, not {}", article(expected), article(type_of(value))));
    }
    match value {
        Value::Object(_) => check_object(value, schema, path, errors),
        Value::Array(items) => {
            let length = items.len() as f64;
            if let Some(min) = bound(schema, "minItems").filter(|min| length < *min) {
                fail(format!("must have at least {}", item_count(min)));
            }
            if let Some(max) = bound(schema, "maxItems").filter(|max| length > *max) {
                fail(format!("must have at most {}", item_count(max)));
            }
            for (index, item) in items.iter().enumerate() {
                check_value(item, &schema["items"], &path.clone().index(index), errors);
            }
        }
        Value::String(text) => check_string(text, schema, &mut fail),
        Value::Number(number) => {
            let number = number.as_f64().unwrap_or_default();
            if let Some(min) = bound(schema, "minimum").filter(|min| number < *min) {
                fail(format!("{number} is too small: the minimum is {min}"));
            }
            if let Some(max) = bound(schema, "maximum").filter(|max| number > *max) {
                fail(format!("{number} is too large: the maximum is {max}"));
            }
        }
        _ => {}
    }
}

fn check_object(value: &Value, schema: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let fields = value.as_object().into_iter().flatten();
    let takes_any =
        schema["x-kubernetes-preserve-unknown-fields"] == true || schema["additionalProperties"] == true;
    for (field, value) in fields {
        match (schema["properties"].get(field), schema.get("additionalProperties")) {
            (Some(schema), _) => check_value(value, schema, &path.clone().join(field.clone()), errors),
            (None, Some(schema)) if schema.is_object() => {
                check_value(value, schema, &path.clone().key(field), errors);
            }
            _ if takes_any => {}
            _ => errors.push(unknown(path.clone().join(field.clone()), field, schema)),
        }
    }
    check_required(value, schema, path, errors);
}

fn unknown(path: FieldPath, field: &str, schema: &Value) -> FieldError {
    let names = schema["properties"].as_object().into_iter().flatten().map(|(name, _)| name.as_str());
    FieldError::new(path, format!("unknown field{}", suggestion(field, names)))
}

fn check_required(value: &Value, schema: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let missing = required.filter(|field| value.get(*field).is_none_or(Value::is_null));
    errors.extend(missing.map(|field| FieldError::new(path.clone().join(field.to_owned()), "is required")));
}

fn check_string(text: &str, schema: &Value, fail: &mut impl FnMut(String)) {
    if let Some(known) = schema["enum"].as_array() {
        let known: Vec<&str> = known.iter().filter_map(Value::as_str).collect();
        if !known.contains(&text) {
            return fail(format!("{text:?} is not one of {}", known.join(", ")));
        }
    }
    let length = text.chars().count() as f64;
    if let Some(min) = bound(schema, "minLength").filter(|min| length < *min) {
        return fail(format!("must have at least {min} characters"));
    }
    if let Some(max) = bound(schema, "maxLength").filter(|max| length > *max) {
        return fail(format!("must have at most {max} characters"));
    }
    // A pattern in a syntax that only the API server's dialect of regular expressions has is left to the API server.
    let pattern = schema["pattern"].as_str().and_then(|pattern| Regex::new(pattern).ok());
    if let Some(pattern) = pattern.filter(|pattern| !pattern.is_match(text)) {
        fail(format!("must match {pattern}"));
    }
}

fn item_count(count: f64) -> String {
    if count == 1.0 { "1 item".into() } else { format!("{count} items") }
}

fn bound(schema: &Value, name: &str) -> Option<f64> {
    schema[name].as_f64()
}

/// A question with the most similar name, if one is similar.
fn suggestion<'a>(written: &str, names: impl Iterator<Item = &'a str>) -> String {
    let similarity = |name: &&str| strsim::jaro_winkler(&written.to_lowercase(), &name.to_lowercase());
    let best = names.map(|name| (similarity(&name), name)).max_by(|one, other| one.0.total_cmp(&other.0));
    match best {
        Some((similarity, name)) if similarity >= MIN_SIMILARITY => format!("; did you mean {name}?"),
        _ => String::new(),
    }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn article(type_: &str) -> String {
    let vowel = type_.starts_with(['a', 'i', 'o']);
    format!("{} {type_}", if vowel { "an" } else { "a" })
}
