//! Validation of an object by the schema of its kind: fields, types, values and bounds. Only the API server evaluates the rules in
//! CEL.

use anyhow::{bail, ensure};
use regex::Regex;
use serde_json::Value;
use skep_api::GROUP;

/// The similarity from which on a name is suggested for another.
const ALIKE: f64 = 0.75;

/// The first error, as a message that starts with the field.
pub(super) fn check(document: &Value, kind: &str, version: &str, crds: &[Value]) -> anyhow::Result<()> {
    let name = |crd: &Value| crd["spec"]["names"]["kind"].as_str().unwrap_or_default().to_owned();
    let Some(crd) = crds.iter().find(|crd| name(crd) == kind) else {
        let all: Vec<String> = crds.iter().map(name).collect();
        bail!("kind: unknown kind {kind} in {GROUP}{}", meant(kind, all.iter().map(String::as_str)));
    };
    let versions = crd["spec"]["versions"].as_array().into_iter().flatten();
    let served: Vec<&Value> = versions.filter(|version| version["served"] == true).collect();
    let names = || served.iter().filter_map(|version| version["name"].as_str()).collect::<Vec<_>>();
    let Some(found) = served.iter().find(|served| served["name"] == version) else {
        bail!("apiVersion: unknown version {version} of {kind}: use {}", names().join(" or "));
    };
    let schema = &found["schema"]["openAPIV3Schema"];
    let Value::Object(fields) = document else { bail!("{kind} must be an object") };
    for (field, value) in fields {
        match field.as_str() {
            "apiVersion" | "kind" | "metadata" | "status" => {}
            _ => match schema["properties"].get(field) {
                Some(schema) => checked(value, schema, field)?,
                None => {
                    bail!("{field}: unknown field{}", meant(field, names_of(&schema["properties"])))
                }
            },
        }
    }
    required(document, schema, "")
}

fn checked(value: &Value, schema: &Value, path: &str) -> anyhow::Result<()> {
    let is_empty_list = value.is_null() && schema["type"] == "array";
    ensure!(!is_empty_list, "{path}: is empty: leave it out, or write []");
    // Null is the same as absent; the types reject it where that is not allowed.
    if value.is_null() || schema["x-kubernetes-int-or-string"] == true {
        return Ok(());
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
    let wanted = schema["type"].as_str().unwrap_or_default();
    ensure!(fits, "{path}: must be {}, is {}", article(wanted), article(type_of(value)));
    match value {
        Value::Object(_) => object(value, schema, path),
        Value::Array(items) => {
            ensure!(
                bound(schema, "minItems").is_none_or(|least| items.len() as f64 >= least),
                "{path}: too few items"
            );
            ensure!(
                bound(schema, "maxItems").is_none_or(|most| items.len() as f64 <= most),
                "{path}: too many items"
            );
            let mut items = items.iter().enumerate();
            items.try_for_each(|(number, item)| checked(item, &schema["items"], &format!("{path}[{number}]")))
        }
        Value::String(text) => string(text, schema, path),
        Value::Number(number) => {
            let number = number.as_f64().unwrap_or_default();
            let (least, most) = (bound(schema, "minimum"), bound(schema, "maximum"));
            ensure!(
                least.is_none_or(|least| number >= least),
                "{path}: {number} is too small: the minimum is {}",
                least.unwrap_or_default()
            );
            ensure!(
                most.is_none_or(|most| number <= most),
                "{path}: {number} is too large: the maximum is {}",
                most.unwrap_or_default()
            );
            Ok(())
        }
        _ => Ok(()),
    }
}

fn object(value: &Value, schema: &Value, path: &str) -> anyhow::Result<()> {
    let fields = value.as_object().into_iter().flatten();
    let takes_any =
        schema["x-kubernetes-preserve-unknown-fields"] == true || schema["additionalProperties"] == true;
    for (field, value) in fields {
        let path = format!("{path}.{field}");
        match (schema["properties"].get(field), schema.get("additionalProperties")) {
            (Some(schema), _) => checked(value, schema, &path)?,
            (None, Some(schema)) if schema.is_object() => checked(value, schema, &path)?,
            _ if takes_any => {}
            _ => bail!("{path}: unknown field{}", meant(field, names_of(&schema["properties"]))),
        }
    }
    required(value, schema, path)
}

fn required(value: &Value, schema: &Value, path: &str) -> anyhow::Result<()> {
    let mut required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let missing = required.find(|field| value.get(*field).is_none_or(Value::is_null));
    let dot = if path.is_empty() { "" } else { "." };
    missing.map_or(Ok(()), |field| bail!("{path}{dot}{field} is missing"))
}

fn string(text: &str, schema: &Value, path: &str) -> anyhow::Result<()> {
    if let Some(known) = schema["enum"].as_array() {
        let known: Vec<&str> = known.iter().filter_map(Value::as_str).collect();
        ensure!(known.contains(&text), "{path}: {text:?} is not one of {}", known.join(", "));
    }
    let length = text.chars().count() as f64;
    ensure!(bound(schema, "minLength").is_none_or(|least| length >= least), "{path}: too short");
    ensure!(bound(schema, "maxLength").is_none_or(|most| length <= most), "{path}: too long");
    let pattern = schema["pattern"].as_str();
    // A pattern that this library does not support is left to the API server.
    if let Some(pattern) = pattern.and_then(|pattern| Regex::new(pattern).ok()) {
        ensure!(pattern.is_match(text), "{path}: must match {pattern}");
    }
    Ok(())
}

fn bound(schema: &Value, name: &str) -> Option<f64> {
    schema[name].as_f64()
}

fn names_of(properties: &Value) -> impl Iterator<Item = &str> {
    properties.as_object().into_iter().flatten().map(|(name, _)| name.as_str())
}

/// A suggestion, if a known name is similar.
fn meant<'a>(written: &str, names: impl Iterator<Item = &'a str>) -> String {
    let alike = |name: &&str| strsim::jaro_winkler(&written.to_lowercase(), &name.to_lowercase());
    let best = names.map(|name| (alike(&name), name)).max_by(|one, other| one.0.total_cmp(&other.0));
    match best {
        Some((likeness, name)) if likeness >= ALIKE => format!("; did you mean {name}?"),
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
