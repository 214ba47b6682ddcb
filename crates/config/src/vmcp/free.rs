//! Parts of any shape.

use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

/// A value of any shape: a JSON Schema, or the arguments of a tool. Its numbers are all of one kind, as in JSON.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(transparent)]
pub struct Free(pub Value);

impl Serialize for Free {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Value::Number(number) => match number.as_f64() {
                // A number that floating point cannot hold is written with all its digits.
                #[allow(clippy::cast_possible_truncation, reason = "it is compared with what it came from")]
                Some(float)
                    if number.as_i64().is_none_or(|whole| float as i64 == whole && whole.abs() < 1 << 53) =>
                {
                    serializer.serialize_f64(float)
                }
                _ => number.serialize(serializer),
            },
            Value::Array(items) => serializer.collect_seq(items.iter().map(|item| Self(item.clone()))),
            Value::Object(map) => {
                serializer.collect_map(map.iter().map(|(key, value)| (key, Self(value.clone()))))
            }
            other => other.serialize(serializer),
        }
    }
}

impl Free {
    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        match &self.0 {
            Value::Null => true,
            Value::Object(map) => map.is_empty(),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use skep_gocompat::yaml::render;

    use super::*;

    #[test]
    fn numbers_are_written_as_go_writes_them() {
        let value =
            Free(json!({"a": 5, "b": 1_000_000, "c": 0.5, "d": 9_007_199_254_740_993_i64, "e": [true, "7"]}));
        let expected = "a: 5\nb: 1e+06\nc: 0.5\nd: 9007199254740993\ne:\n    - true\n    - \"7\"\n";
        assert_eq!(render(&value).unwrap(), expected);
    }
}
