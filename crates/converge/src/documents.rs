//! The JSON and YAML documents in a ConfigMap with the configuration of pods.
//!
//! The layout of a document (indentation, quotes, the order of keys) means nothing to its reader. So documents are compared
//! as values, and an apply keeps the live text of each document whose value stays. Neither a takeover nor a new version of
//! our own encoder then rewrites a file, or changes its checksum.
//!
//! Only ConfigMaps with the label [`labels::COMPONENT`] are treated so: those that we write. A text that a user wrote for
//! another ConfigMap is applied as it is.

use std::collections::BTreeMap;

use serde_json::{Map, Number, Value};
use skep_config::labels;

use crate::Digest;

/// The digest of the documents in a ConfigMap's `data`. It does not depend on their layout.
pub fn documents_digest(data: &BTreeMap<String, String>) -> Digest {
    let values = data.iter().map(|(name, text)| {
        (name.clone(), document(name, text).unwrap_or_else(|| Value::String(text.clone())))
    });
    Digest::of(&Value::Object(values.collect()))
}

/// The fields of an object with each document as its value.
pub(crate) fn parsed(mut fields: Value) -> Value {
    for (name, text) in texts(&mut fields).into_iter().flatten() {
        if let Some(value) = text.as_str().and_then(|text| document(name, text)) {
            *text = value;
        }
    }
    fields
}

/// The object with the live text of each document whose value is the same.
pub(crate) fn with_live_layout(mut object: Value, live: &Value) -> Value {
    for (name, text) in texts(&mut object).into_iter().flatten() {
        let live = &live["data"][name.as_str()];
        let value = |text: &Value| document(name, text.as_str()?);
        if value(text).is_some_and(|ours| value(live) == Some(ours)) {
            *text = live.clone();
        }
    }
    object
}

/// Whether the object has documents.
pub(crate) fn has_documents(object: &Value) -> bool {
    object["data"].is_object() && object["metadata"]["labels"].get(labels::COMPONENT).is_some()
}

fn texts(object: &mut Value) -> Option<&mut Map<String, Value>> {
    has_documents(object).then(|| object["data"].as_object_mut()).flatten()
}

/// The value of a document, by the ending of its file's name. `None` if the text is not an object or a list.
fn document(name: &str, text: &str) -> Option<Value> {
    let value: Value = match name.rsplit_once('.')?.1 {
        "json" => serde_json::from_str(text).ok()?,
        "yaml" => serde_saphyr::from_str(text).ok()?,
        _ => return None,
    };
    (value.is_object() || value.is_array()).then(|| with_plain_numbers(value))
}

/// The value with integers where a number has no fraction: `1e+06` is `1000000`.
fn with_plain_numbers(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            fields.into_iter().map(|(name, value)| (name, with_plain_numbers(value))).collect()
        }
        Value::Array(items) => items.into_iter().map(with_plain_numbers).collect(),
        Value::Number(number) => Value::Number(plain(number)),
        other => other,
    }
}

fn plain(number: Number) -> Number {
    /// Every smaller integer has a floating-point number of its own.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match number.as_f64() {
        #[allow(clippy::cast_possible_truncation, reason = "it has no fraction and is small enough")]
        Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < EXACT => {
            Number::from(float as i64)
        }
        _ => number,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const BLOCK: &str = "a: '1'\nb:\n    - 1e+06\n    - |\n      x\n      y\n";
    const FLOW: &str = "{\"b\": [1000000, \"x\\ny\\n\"], \"a\": \"1\"}";

    fn config_map(text: &str) -> Value {
        json!({"metadata": {"labels": {labels::COMPONENT: "run-config"}}, "data": {"config.yaml": text}})
    }

    #[test]
    fn documents_of_one_value_are_equal_in_every_layout() {
        assert_eq!(parsed(config_map(BLOCK)), parsed(config_map(FLOW)));
        let digest = |text: &str| documents_digest(&[("config.yaml".to_owned(), text.to_owned())].into());
        assert_eq!(digest(BLOCK), digest(FLOW));
        assert_ne!(digest(BLOCK), digest("a: 1\n"));
    }

    #[test]
    fn the_live_text_is_kept_if_its_value_is_the_same() {
        assert_eq!(with_live_layout(config_map(FLOW), &config_map(BLOCK)), config_map(BLOCK));
        assert_eq!(with_live_layout(config_map(FLOW), &config_map("a: 2\n")), config_map(FLOW));
        assert_eq!(with_live_layout(config_map(FLOW), &json!({})), config_map(FLOW));
    }

    #[test]
    fn a_text_of_a_user_is_compared_as_a_text() {
        let config_map = |text: &str| json!({"data": {"config.yaml": text}});
        assert_ne!(parsed(config_map(BLOCK)), parsed(config_map(FLOW)));
        assert_eq!(with_live_layout(config_map(FLOW), &config_map(BLOCK)), config_map(FLOW));
    }

    #[test]
    fn what_is_not_a_document_is_compared_as_a_text() {
        for (name, text) in
            [("a.json", "1.0"), ("a.json", "{"), ("a.yaml", "x"), ("a.txt", "{}"), ("a", "{}")]
        {
            assert_eq!(document(name, text), None, "{name}: {text}");
        }
    }
}
