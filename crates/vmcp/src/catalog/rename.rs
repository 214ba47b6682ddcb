//! An item under another name, with another description or other annotations. Everything else stays as it was received.

use std::fmt::Write;

use serde_json::Value;
use skep_api::tools::ToolAnnotations;
use skep_mcp::{Object, Raw};

/// What is different about an item.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Changes<'a> {
    pub(super) name: Option<&'a str>,
    pub(super) description: Option<&'a str>,
    pub(super) annotations: Option<&'a ToolAnnotations>,
}

/// The item with these changes.
pub(super) fn changed(json: &str, changes: Changes<'_>) -> Box<str> {
    let Some(item) = Raw::spelled(json) else { return json.into() };
    let Ok(entries) = item.entries() else { return json.into() };
    let annotations = changes.annotations.map(|hints| annotations(item.get("annotations"), hints));
    let new = [
        ("name", changes.name.map(text)),
        ("description", changes.description.map(text)),
        ("annotations", annotations),
    ];
    let replacement =
        |key: &str| new.iter().find(|(name, _)| *name == key).and_then(|(_, value)| value.as_deref());
    let mut sent = String::with_capacity(json.len() + 64);
    for (key, value) in &entries {
        let value = replacement(&key.decoded()).unwrap_or(value.as_str());
        write!(sent, ",{}:{value}", key.raw().as_str()).ok();
    }
    let is_new = |key: &str| !entries.iter().any(|(name, _)| name.decoded() == key);
    for (key, value) in new.iter().filter(|(key, _)| is_new(key)) {
        if let Some(value) = value {
            write!(sent, ",\"{key}\":{value}").ok();
        }
    }
    format!("{{{}}}", sent.strip_prefix(',').unwrap_or_default()).into()
}

/// The item with another description.
pub(crate) fn described(json: &str, description: &str) -> Box<str> {
    changed(json, Changes { description: Some(description), ..Changes::default() })
}

/// The item without this field.
pub(super) fn without(json: &str, field: &str) -> Box<str> {
    let entries = Raw::spelled(json).and_then(|item| item.entries().ok()).unwrap_or_default();
    let mut object = Object::default();
    for (key, value) in entries.iter().filter(|(key, _)| key.decoded() != field) {
        object.put(key.raw().as_str(), value.as_str());
    }
    object.json().into()
}

/// The item with this field, as JSON, which it lacks.
pub(super) fn with(json: &str, field: &str, value: &str) -> Box<str> {
    let entries = Raw::spelled(json).and_then(|item| item.entries().ok()).unwrap_or_default();
    let mut object = Object::default();
    for (key, value) in &entries {
        object.put(key.raw().as_str(), value.as_str());
    }
    object.put(&text(field), value);
    object.json().into()
}

fn text(text: &str) -> String {
    Value::from(text).to_string()
}

/// The annotations of the backend, with those that are overridden.
fn annotations(own: Option<Raw<'_>>, overridden: &ToolAnnotations) -> String {
    let own: Value = own.and_then(|own| serde_json::from_str(own.as_str()).ok()).unwrap_or_default();
    let mut all = own.as_object().cloned().unwrap_or_default();
    if let Ok(Value::Object(overridden)) = serde_json::to_value(overridden) {
        all.extend(overridden);
    }
    Value::Object(all).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_changes_is_written_anew() {
        let tool =
            r#"{"inputSchema":{"n":1e2},"name":"a","annotations":{"title":"A","idempotentHint":true}}"#;
        let changes = Changes {
            name: Some("b\""),
            description: Some("new"),
            annotations: Some(&ToolAnnotations { title: Some("B".into()), ..Default::default() }),
        };
        assert_eq!(
            &*changed(tool, changes),
            r#"{"inputSchema":{"n":1e2},"name":"b\"","annotations":{"title":"B","idempotentHint":true},"description":"new"}"#
        );
        assert_eq!(&*changed(tool, Changes::default()), tool);
    }
}
