//! An item under another name, with another description or other annotations. Everything else stays as it was received.

use serde_json::Value;
use skep_api::tools::ToolAnnotations;
use skep_mcp::{Kind, Object, Raw};

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
    let annotations = changes.annotations.map(|hints| annotations(item.get("annotations"), hints));
    let new = [
        ("name", changes.name.map(text)),
        ("description", changes.description.map(text)),
        ("annotations", annotations),
    ];
    let new: Vec<_> = new.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect();
    with_members(item, &new).unwrap_or_else(|| json.into()).into()
}

/// The object with these members, as JSON, each in the place of its own one, or after all of them.
fn with_members(object: Raw<'_>, new: &[(String, String)]) -> Option<String> {
    let mut written = Object::default();
    let mut is_written = vec![false; new.len()];
    let all = object.for_each_entry(|key, value| {
        let replacement = new.iter().position(|(name, _)| **name == *key.decoded());
        let value = replacement.map_or(value.as_str(), |index| {
            is_written[index] = true;
            new[index].1.as_str()
        });
        written.put(key.raw().as_str(), value);
    });
    all.ok()?;
    for ((name, value), _) in new.iter().zip(is_written).filter(|(_, is_written)| !is_written) {
        written.put(&text(name), value);
    }
    Some(written.json())
}

/// The item with another description.
pub(crate) fn described(json: &str, description: &str) -> Box<str> {
    changed(json, Changes { description: Some(description), ..Changes::default() })
}

/// The item without this field.
pub(super) fn without(json: &str, field: &str) -> Box<str> {
    let mut object = Object::default();
    let all = Raw::spelled(json).map(|item| {
        item.for_each_entry(|key, value| {
            if key.decoded() != field {
                object.put(key.raw().as_str(), value.as_str());
            }
        })
    });
    if all.is_some_and(|all| all.is_ok()) { object.json().into() } else { "{}".into() }
}

/// The item with this field, as JSON, which it lacks.
pub(super) fn with(json: &str, field: &str, value: &str) -> Box<str> {
    let item = Raw::spelled(json).filter(|item| item.kind() == Kind::Object);
    let item = item.or_else(|| Raw::spelled("{}"));
    let new = [(field.to_owned(), value.to_owned())];
    item.and_then(|item| with_members(item, &new)).unwrap_or_default().into()
}

fn text(text: &str) -> String {
    Value::from(text).to_string()
}

/// The annotations of the backend, with those that are overridden. A hostile backend may send very many: no tree is built.
fn annotations(own: Option<Raw<'_>>, overridden: &ToolAnnotations) -> String {
    let Ok(Value::Object(overridden)) = serde_json::to_value(overridden) else { return "{}".into() };
    let new: Vec<_> = overridden.into_iter().map(|(name, value)| (name, value.to_string())).collect();
    let own = own.filter(|own| own.kind() == Kind::Object).or_else(|| Raw::spelled("{}"));
    own.and_then(|own| with_members(own, &new)).unwrap_or_else(|| "{}".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_changes_is_written_anew() {
        let tool = r#"{"inputSchema":{"n":1e2},"name":"a","annotations":{"title":"A","x":1e999,"idempotentHint":true}}"#;
        let changes = Changes {
            name: Some("b\""),
            description: Some("new"),
            annotations: Some(&ToolAnnotations { title: Some("B".into()), ..Default::default() }),
        };
        assert_eq!(
            &*changed(tool, changes),
            r#"{"inputSchema":{"n":1e2},"name":"b\"","annotations":{"title":"B","x":1e999,"idempotentHint":true},"description":"new"}"#
        );
        assert_eq!(&*changed(tool, Changes::default()), tool);
    }
}
