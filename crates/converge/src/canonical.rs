//! Values as the API server gives them back.
//!
//! What we apply and what we later read at the same paths must be equal to the letter, or drift would be seen where
//! there is none. The API server rewrites three things on the way, each seen on a real one:
//!
//! * quantities come back in their shortest form: `0.5` as `500m`, `1024Mi` as `1Gi`;
//! * empty texts, numbers and lists of optional fields vanish: `value: ""`; but not the entries of maps;
//! * in a struct or list element that is owned as a whole, defaults are filled in. Those are for the builders to say.

use serde_json::{Map, Value};

/// Fields whose values are maps from names to texts: their entries are data, and an empty one is kept.
const MAPS: [&str; 7] =
    ["labels", "annotations", "matchLabels", "nodeSelector", "data", "binaryData", "volumeAttributes"];

/// Fields in which an empty text is kept: it must be there, or it means another thing than nothing.
const KEPT: [&str; 4] = ["httpHeaders", "options", "storageClassName", "sysctls"];

/// Fields whose values are maps from names to quantities.
const QUANTITY_MAPS: [&str; 5] = ["limits", "requests", "capacity", "hard", "overhead"];

/// Fields that hold one quantity.
const QUANTITIES: [&str; 3] = ["sizeLimit", "divisor", "storage"];

/// The value as the API server will give it back.
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
    if KEPT.contains(&key.as_str()) && !value.is_null() {
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
    (!vanishes(&value)).then_some((key, value))
}

fn entries(map: Map<String, Value>) -> Map<String, Value> {
    map.into_iter().filter(|(_, value)| !value.is_null()).collect()
}

/// Whether the API server leaves a struct's field with this value out. An empty object may mean something
/// (`emptyDir: {}`), and zero and false may be set on purpose where the field is a pointer, so these stay.
fn vanishes(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

/// A quantity in its shortest form, or the value as it is if it is none.
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
    fn quantities_are_written_anew_and_what_is_none_stays() {
        let given =
            json!({"limits": {"cpu": 0.5, "memory": "1024Mi"}, "sizeLimit": "1000M", "storage": "lots"});
        let expected =
            json!({"limits": {"cpu": "500m", "memory": "1Gi"}, "sizeLimit": "1G", "storage": "lots"});
        assert_eq!(canonical(given), expected);
    }

    #[test]
    fn empty_fields_vanish_and_empty_entries_stay() {
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
