//! Values as the API server returns them.
//!
//! What we apply and what we later read at the same paths must be identical, or drift would be detected where there
//! is none. The API server normalizes three things, each observed on a real one:
//!
//! * quantities are returned in their shortest form: `0.5` as `500m`, `1024Mi` as `1Gi`;
//! * empty strings, numbers and lists of optional fields are dropped: `value: ""`; but not the entries of maps;
//! * in a struct or list element that is owned as a whole, defaults are filled in. The builders must set those
//!   explicitly.

use serde_json::{Map, Value};

/// Fields whose values are maps from names to strings: their entries are data, and an empty one is preserved.
const MAPS: [&str; 7] =
    ["labels", "annotations", "matchLabels", "nodeSelector", "data", "binaryData", "volumeAttributes"];

/// Fields in which an empty string is preserved: it is required, or differs in meaning from an absent value.
const PRESERVED_EMPTY: [&str; 4] = ["httpHeaders", "options", "storageClassName", "sysctls"];

/// Fields whose values are maps from names to quantities.
const QUANTITY_MAPS: [&str; 5] = ["limits", "requests", "capacity", "hard", "overhead"];

/// Fields that hold one quantity.
const QUANTITIES: [&str; 3] = ["sizeLimit", "divisor", "storage"];

/// The value as the API server will return it.
pub(crate) fn canonical(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            Value::Object(map.into_iter().filter_map(|(key, value)| field(key, value)).collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(canonical).collect()),
        scalar => scalar,
    }
}

fn field(key: String, value: Value) -> Option<(String, Value)> {
    if PRESERVED_EMPTY.contains(&key.as_str()) && !value.is_null() {
        return Some((key, value));
    }
    let value = match value {
        Value::Object(map) if MAPS.contains(&key.as_str()) => Value::Object(entries(map)),
        Value::Object(map) if QUANTITY_MAPS.contains(&key.as_str()) => {
            Value::Object(map.into_iter().map(|(name, amount)| (name, quantity(amount))).collect())
        }
        amount if QUANTITIES.contains(&key.as_str()) => quantity(amount),
        other => canonical(other),
    };
    (!is_dropped(&value)).then_some((key, value))
}

fn entries(map: Map<String, Value>) -> Map<String, Value> {
    map.into_iter().filter(|(_, value)| !value.is_null()).collect()
}

/// Whether the API server drops a struct's field with this value. An empty object may be meaningful (`emptyDir: {}`),
/// and zero and false may be set explicitly where the field is a pointer, so these are preserved.
fn is_dropped(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

/// A quantity in its shortest form; any other value unchanged.
fn quantity(value: Value) -> Value {
    let text = match &value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => return value,
    };
    skep_gocompat::quantity::canonical(&text).map_or(value, Value::String)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn quantities_are_normalized_and_other_values_are_unchanged() {
        let given =
            json!({"limits": {"cpu": 0.5, "memory": "1024Mi"}, "sizeLimit": "1000M", "storage": "lots"});
        let expected =
            json!({"limits": {"cpu": "500m", "memory": "1Gi"}, "sizeLimit": "1G", "storage": "lots"});
        assert_eq!(canonical(given), expected);
    }

    #[test]
    fn empty_fields_are_dropped_and_empty_entries_preserved() {
        let given = json!({
            "metadata": {"annotations": {"note": ""}, "labels": null},
            "spec": {"containers": [{"name": "a", "env": [{"name": "X", "value": ""}], "args": []}], "emptyDir": {}},
            "httpGet": {"path": "", "httpHeaders": [{"name": "X", "value": ""}]},
            "claim": {"storageClassName": "", "volumeName": ""},
        });
        let expected = json!({
            "metadata": {"annotations": {"note": ""}},
            "spec": {"containers": [{"name": "a", "env": [{"name": "X"}]}], "emptyDir": {}},
            "httpGet": {"httpHeaders": [{"name": "X", "value": ""}]},
            "claim": {"storageClassName": ""},
        });
        assert_eq!(canonical(given), expected);
    }
}
