//! The configuration files of pods: the JSON and YAML documents in the ConfigMaps that we write.
//!
//! The layout of a document (indentation, quotes, the order of keys) means nothing to its reader. So documents are
//! compared as values, and an apply keeps the live texts if all values stay. Neither a takeover nor a new version of our
//! own encoder then rewrites a file, or changes its checksum.
//!
//! Only the [files](paths::CONFIG_FILES) in ConfigMaps with the label [`labels::COMPONENT`] are treated so: those that we
//! write. A text that a user wrote for another ConfigMap is applied unchanged.

use std::collections::BTreeMap;

use kube::core::DynamicObject;
use serde_json::{Map, Number, Value};
use skep_config::{labels, paths, run_config::Middleware};

use crate::Digest;

/// The digest of the documents in a ConfigMap's `data`. It does not depend on their layout.
pub fn documents_digest(data: &BTreeMap<String, String>) -> Digest {
    let texts = data.iter().map(|(name, text)| (name.as_str(), text.as_str()));
    Digest::of(&Value::Object(documents(texts)))
}

/// The fields of an object with each document as its value.
pub(crate) fn parsed(mut fields: Value) -> Value {
    if has_documents(&fields) {
        let values = documents(texts(&fields));
        values.into_iter().for_each(|(name, value)| fields["data"][name] = value);
    }
    fields
}

/// The object with the live texts of its documents, if all have the same values. One that changes rolls the pods anyway.
pub(crate) fn with_live_layout(mut object: Value, live: &Value) -> Value {
    if has_documents(&object) && documents(texts(&object)) == documents(texts(live)) {
        let live = texts(live).filter(|(name, _)| paths::CONFIG_FILES.contains(name));
        live.for_each(|(name, text)| object["data"][name] = text.into());
    }
    object
}

/// The digest of the documents in an object, if it is a ConfigMap with configuration files.
pub(crate) fn digest(object: &Value) -> Option<Digest> {
    has_documents(object).then(|| Digest::of(&Value::Object(documents(texts(object)))))
}

/// The digest of the documents in a live object, if it is a ConfigMap with configuration files.
pub(crate) fn of(object: &DynamicObject) -> Option<Digest> {
    object.metadata.labels.as_ref()?.get(labels::COMPONENT)?;
    object.data.get("data").filter(|data| data.is_object())?;
    Some(Digest::of(&Value::Object(documents(texts(&object.data)))))
}

/// Whether the object is a ConfigMap with configuration files.
fn has_documents(object: &Value) -> bool {
    object["data"].is_object() && object["metadata"]["labels"].get(labels::COMPONENT).is_some()
}

fn texts(object: &Value) -> impl Iterator<Item = (&str, &str)> {
    let data = object["data"].as_object().into_iter().flatten();
    data.filter_map(|(name, text)| Some((name.as_str(), text.as_str()?)))
}

/// The values of the documents among the texts. A malformed document is compared as a text.
fn documents<'a>(texts: impl Iterator<Item = (&'a str, &'a str)>) -> Map<String, Value> {
    let files = texts.filter(|(name, _)| paths::CONFIG_FILES.contains(name));
    files.map(|(name, text)| (name.to_owned(), value(name, text).unwrap_or_else(|| text.into()))).collect()
}

fn value(name: &str, text: &str) -> Option<Value> {
    let value: Value = match name.ends_with(".json") {
        true => serde_json::from_str(text).ok()?,
        false => serde_saphyr::from_str(text).ok()?,
    };
    value.is_object().then(|| without_reports(with_plain_numbers(value)))
}

/// The value without the middleware that sends usage reports, which does nothing here. ToolHive's operator adds it by default.
fn without_reports(mut value: Value) -> Value {
    if let Some(Value::Array(middlewares)) = value.get_mut("middleware_configs") {
        middlewares.retain(|middleware| middleware["type"] != Middleware::UsageMetrics.type_());
    }
    value
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
    /// Every smaller integer has its own floating-point number.
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

    fn config_map(files: Value) -> Value {
        json!({"metadata": {"labels": {labels::COMPONENT: "vmcp-config"}}, "data": files})
    }

    #[test]
    fn documents_of_one_value_are_equal_in_every_layout() {
        let fields = |text: &str| parsed(config_map(json!({"config.yaml": text})));
        assert_eq!(fields(BLOCK), fields(FLOW));
        let digest = |text: &str| documents_digest(&[("config.yaml".to_owned(), text.to_owned())].into());
        assert_eq!(digest(BLOCK), digest(FLOW));
        assert_ne!(digest(BLOCK), digest("a: 1\n"));
    }

    #[test]
    fn live_texts_are_kept_if_all_values_are_the_same() {
        let ours = config_map(json!({"config.yaml": FLOW, "authserver-config.yaml": "{b: 1}"}));
        let live = config_map(json!({"config.yaml": BLOCK, "authserver-config.yaml": "b: 1\n"}));
        assert_eq!(with_live_layout(ours.clone(), &live), live);
        let with_another_key = config_map(json!({
            "config.yaml": BLOCK, "authserver-config.yaml": "b: 1\n", "notes.yaml": "{}",
        }));
        assert_eq!(with_live_layout(ours.clone(), &with_another_key), live);
        for other in [
            json!({"config.yaml": BLOCK, "authserver-config.yaml": "b: 2\n"}),
            json!({"config.yaml": BLOCK}),
            json!({"config.yaml": BLOCK, "authserver-config.yaml": "b: 1\n", "runconfig.json": "{}"}),
            json!({}),
        ] {
            assert_eq!(with_live_layout(ours.clone(), &config_map(other)), ours);
        }
    }

    #[test]
    fn a_run_config_that_reports_usage_means_the_same_as_one_that_does_not() {
        let with = r#"{"name": "x", "middleware_configs": [{"type": "auth"}, {"type": "usagemetrics", "parameters": {}}]}"#;
        let without = r#"{"name": "x", "middleware_configs": [{"type": "auth"}]}"#;
        let config_map = |text: &str| config_map(json!({"runconfig.json": text}));
        assert_eq!(parsed(config_map(with)), parsed(config_map(without)));
        assert_eq!(with_live_layout(config_map(without), &config_map(with)), config_map(with));
        let other = r#"{"name": "y", "middleware_configs": [{"type": "auth"}]}"#;
        assert_eq!(with_live_layout(config_map(other), &config_map(with)), config_map(other));
    }

    #[test]
    fn a_text_of_a_user_is_compared_as_a_text() {
        let config_map = |text: &str| json!({"data": {"config.yaml": text}});
        assert_ne!(parsed(config_map(BLOCK)), parsed(config_map(FLOW)));
        assert_eq!(with_live_layout(config_map(FLOW), &config_map(BLOCK)), config_map(FLOW));
    }

    #[test]
    fn a_malformed_document_is_compared_as_a_text() {
        for (name, text) in [("runconfig.json", "1.0"), ("runconfig.json", "{"), ("config.yaml", "x")] {
            assert_eq!(documents([(name, text)].into_iter())[name], text);
        }
    }
}
