//! Digests of values.

use serde::{Serialize, Serializer};
use serde_json::Value;
use xxhash_rust::xxh3::xxh3_128;

/// A fingerprint of a JSON value: equal values have equal digests, regardless of the order of their keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Digest(u128);

impl Digest {
    /// The digest of a value.
    pub fn of(value: &Value) -> Self {
        // Any crate of the program can enable serde_json's `preserve_order`, so sorted keys are not relied on.
        let text = serde_json::to_string(&Sorted(value)).unwrap_or_else(|_| value.to_string());
        Self(xxh3_128(text.as_bytes()))
    }
}

/// A value that serializes with sorted keys.
struct Sorted<'a>(&'a Value);

impl Serialize for Sorted<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Object(fields) => {
                let mut fields: Vec<_> = fields.iter().collect();
                fields.sort_unstable_by_key(|(key, _)| *key);
                serializer.collect_map(fields.into_iter().map(|(key, value)| (key, Sorted(value))))
            }
            Value::Array(items) => serializer.collect_seq(items.iter().map(Sorted)),
            other => other.serialize(serializer),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(text: &str) -> Digest {
        Digest::of(&serde_json::from_str(text).unwrap())
    }

    #[test]
    fn the_order_of_items_counts_and_that_of_keys_does_not() {
        let one = digest(r#"{"a": [{"b": 1, "c": {"d": null, "e": "x"}}], "f": true}"#);
        assert_eq!(one, digest(r#"{"f": true, "a": [{"c": {"e": "x", "d": null}, "b": 1}]}"#));
        assert_ne!(one, digest(r#"{"f": true, "a": [{"c": {"e": "d", "d": null}, "b": 1}]}"#));
        assert_ne!(digest("[1, 2]"), digest("[2, 1]"));
    }
}
