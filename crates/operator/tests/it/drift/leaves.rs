//! The values that the operator owns in an object, one by one.

use kube::core::DynamicObject;
use serde_json::{Value, json};

/// The JSON pointers to the values that the operator owns, one for each leaf.
pub(super) fn owned_leaves(object: &DynamicObject, manager: &str, subresource: Option<&str>) -> Vec<String> {
    let entries = object.metadata.managed_fields.iter().flatten();
    let mut entries = entries.filter(|entry| {
        let same = (entry.manager.as_deref(), entry.subresource.as_deref()) == (Some(manager), subresource);
        same && entry.operation.as_deref() == Some("Apply")
    });
    let fields = &entries.next().expect("the operator has applied it").fields_v1.as_ref().unwrap().0;
    let mut leaves = Vec::new();
    walk(&serde_json::to_value(object).unwrap(), fields, "", &mut leaves);
    leaves
}

fn walk(value: &Value, fields: &Value, path: &str, leaves: &mut Vec<String>) {
    let fields = fields.as_object().unwrap();
    if fields.is_empty() {
        return whole(value, path, leaves);
    }
    for (key, inner) in fields {
        if let Some(name) = key.strip_prefix("f:") {
            let escaped = name.replace('~', "~0").replace('/', "~1");
            if let Some(value) = value.get(name) {
                walk(value, inner, &format!("{path}/{escaped}"), leaves);
            }
        } else if let Some(keys) = key.strip_prefix("k:") {
            let keys: serde_json::Map<String, Value> = serde_json::from_str(keys).unwrap();
            let matches = |item: &Value| keys.iter().all(|(key, value)| item.get(key) == Some(value));
            if let Some(index) = value.as_array().unwrap().iter().position(matches) {
                let mut own = Vec::new();
                walk(&value[index], inner, &format!("{path}/{index}"), &mut own);
                // Under another key it is another element, which is not ours.
                let is_key = |leaf: &String| keys.keys().any(|key| *leaf == format!("{path}/{index}/{key}"));
                leaves.extend(own.into_iter().filter(|leaf| !is_key(leaf)));
            }
        }
    }
}

/// A value that is owned as a whole: each scalar in it.
fn whole(value: &Value, path: &str, leaves: &mut Vec<String>) {
    match value {
        Value::Object(map) => map.iter().for_each(|(key, value)| {
            whole(value, &format!("{path}/{}", key.replace('~', "~0").replace('/', "~1")), leaves);
        }),
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(i, item)| whole(item, &format!("{path}/{i}"), leaves))
        }
        _ => leaves.push(path.into()),
    }
}

/// Another value of the same type.
pub(super) fn other(value: &Value) -> Value {
    match value {
        Value::String(text) if text == "True" => json!("False"),
        Value::String(text) if text == "False" => json!("True"),
        Value::String(text) if text == "Pending" => json!("Failed"),
        Value::String(text) if text.starts_with('/') => json!(format!("{text}x")),
        Value::String(text) => json!(format!("x{text}")),
        Value::Number(number) => json!(number.as_i64().unwrap() + 1),
        Value::Bool(flag) => json!(!flag),
        value => panic!("no other value for {value}"),
    }
}
