//! What differs between two pod templates.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::Value;

/// How many differences are shown.
const SHOWN: usize = 50;
/// Of a longer value, only its beginning is shown.
const LENGTH: usize = 120;

/// A field that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Change {
    pub(super) field: String,
    /// The value, or nothing if there was none.
    pub(super) before: Option<String>,
    pub(super) after: Option<String>,
}

/// The fields that differ. Values of variables are not shown: they may be secret.
pub(super) fn changes(before: &Value, after: &Value) -> Vec<Change> {
    let mut found = Vec::new();
    add("", before, after, &mut found);
    found.truncate(SHOWN);
    found
}

fn add(field: &str, before: &Value, after: &Value, found: &mut Vec<Change>) {
    if before == after {
        return;
    }
    match (before, after) {
        (Value::Object(one), Value::Object(other)) => {
            for name in one.keys().chain(other.keys()).collect::<BTreeSet<_>>() {
                let inner = if field.is_empty() { name.clone() } else { format!("{field}.{name}") };
                add(&inner, &before[name], &after[name], found);
            }
        }
        (Value::Array(one), Value::Array(other)) if is_named(one) && is_named(other) => {
            for name in one.iter().chain(other).filter_map(name_of).collect::<BTreeSet<_>>() {
                let of = |list: &[Value]| {
                    list.iter().find(|entry| name_of(entry) == Some(name)).cloned().unwrap_or_default()
                };
                add(&format!("{field}[{name}]"), &of(one), &of(other), found);
            }
        }
        _ => found.push(Change {
            field: field.to_owned(),
            before: shown(field, before),
            after: shown(field, after),
        }),
    }
}

/// Lists whose entries have names are compared by these.
fn is_named(list: &[Value]) -> bool {
    !list.is_empty() && list.iter().all(|entry| name_of(entry).is_some())
}

fn name_of(entry: &Value) -> Option<&str> {
    entry["name"].as_str()
}

fn shown(field: &str, value: &Value) -> Option<String> {
    if value.is_null() {
        return None;
    }
    if field.contains(".env[") || field.ends_with(".env") {
        return Some("(not shown)".to_owned());
    }
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let end = text.floor_char_boundary(LENGTH);
    Some(if end < text.len() { format!("{}…", &text[..end]) } else { text })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn entries_of_lists_are_compared_by_their_names_and_values_of_variables_are_not_shown() {
        let template = |image: &str, token: &str| {
            json!({"spec": {"containers": [
                {"name": "proxy", "image": image, "args": ["run", image], "env": [
                    {"name": "TOKEN", "value": token}, {"name": "SAME", "value": "s"},
                ]},
            ]}})
        };
        let found = changes(&template("a:1", "secret-1"), &template("a:2", "secret-2"));
        let texts: Vec<_> = found
            .iter()
            .map(|Change { field, before, after }| {
                format!("{field}: {} -> {}", before.as_deref().unwrap(), after.as_deref().unwrap())
            })
            .collect();
        assert_eq!(
            texts,
            [
                r#"spec.containers[proxy].args: ["run","a:1"] -> ["run","a:2"]"#,
                "spec.containers[proxy].env[TOKEN].value: (not shown) -> (not shown)",
                "spec.containers[proxy].image: a:1 -> a:2",
            ]
        );
    }

    #[test]
    fn what_is_added_and_removed_has_one_side() {
        let found = changes(&json!({"a": 1}), &json!({"b": "x".repeat(500)}));
        assert_eq!((found[0].before.as_deref(), &found[0].after), (Some("1"), &None));
        assert!(found[1].before.is_none() && found[1].after.as_ref().unwrap().len() < 130);
        assert!(changes(&json!({"a": 1}), &json!({"a": 1})).is_empty());
    }
}
