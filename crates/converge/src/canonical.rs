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
const MAPS: [&str; 6] = ["labels", "annotations", "matchLabels", "nodeSelector", "data", "binaryData"];

/// Fields whose values are maps from names to quantities.
const QUANTITY_MAPS: [&str; 4] = ["limits", "requests", "capacity", "hard"];

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
    shortest(&text).map_or(value, Value::String)
}

/// Decimal suffixes by powers of ten, binary ones by powers of 1024.
const DECIMAL: [(&str, i32); 9] =
    [("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15)];
const BINARY: [(&str, u32); 6] = [("Ki", 1), ("Mi", 2), ("Gi", 3), ("Ti", 4), ("Pi", 5), ("Ei", 6)];

fn shortest(text: &str) -> Option<String> {
    let digits = text.find(|c: char| !matches!(c, '0'..='9' | '.' | '+' | '-')).unwrap_or(text.len());
    let (number, suffix) = text.split_at(digits);
    if let Some((_, power)) = BINARY.iter().find(|(name, _)| *name == suffix) {
        return shortest_binary(number, *power);
    }
    let (_, power) = DECIMAL.iter().find(|(name, _)| *name == suffix)?;
    let nano = scaled(number, power + 9)?;
    let (name, exponent) =
        DECIMAL.iter().rev().find(|(_, exponent)| nano % 10_i128.pow(nine_more(*exponent)) == 0)?;
    if nano == 0 {
        return Some("0".into());
    }
    Some(format!("{}{name}", nano / 10_i128.pow(nine_more(*exponent))))
}

fn shortest_binary(number: &str, power: u32) -> Option<String> {
    let nano = scaled(number, 9)?.checked_mul(1024_i128.checked_pow(power)?)?;
    let bytes = (nano % 1_000_000_000 == 0).then_some(nano / 1_000_000_000)?;
    if bytes == 0 {
        return Some("0".into());
    }
    let suffix = BINARY.iter().rev().find(|(_, power)| bytes % 1024_i128.pow(*power) == 0);
    Some(suffix.map_or_else(
        || bytes.to_string(),
        |(name, power)| format!("{}{name}", bytes / 1024_i128.pow(*power)),
    ))
}

fn nine_more(exponent: i32) -> u32 {
    (exponent + 9).unsigned_abs()
}

/// A decimal number times ten to the power, if that is whole.
fn scaled(number: &str, power: i32) -> Option<i128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let places = usize::try_from(power).ok()?;
    let fraction = fraction.trim_end_matches('0');
    if fraction.len() > places {
        return None;
    }
    format!("{whole}{fraction}{}", "0".repeat(places - fraction.len())).parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn quantities_are_written_as_the_api_server_writes_them() {
        for (ours, theirs) in [
            ("0.5", "500m"),
            ("500m", "500m"),
            ("1", "1"),
            ("1000m", "1"),
            ("1.0", "1"),
            ("0.1", "100m"),
            ("1024Mi", "1Gi"),
            ("128Mi", "128Mi"),
            ("1.5Gi", "1536Mi"),
            ("2048", "2048"),
            ("2000", "2k"),
            ("0", "0"),
            ("0Mi", "0"),
            ("1e3x", "1e3x"),
            ("100M", "100M"),
            ("1000M", "1G"),
        ] {
            assert_eq!(quantity(json!(ours)), json!(theirs), "{ours}");
        }
    }

    #[test]
    fn empty_fields_vanish_and_empty_entries_stay() {
        let given = json!({
            "metadata": {"annotations": {"note": ""}, "labels": null},
            "spec": {"containers": [{"name": "a", "env": [{"name": "X", "value": ""}], "args": []}], "emptyDir": {}},
        });
        let expected = json!({
            "metadata": {"annotations": {"note": ""}},
            "spec": {"containers": [{"name": "a", "env": [{"name": "X"}]}], "emptyDir": {}},
        });
        assert_eq!(canonical(given), expected);
    }
}
