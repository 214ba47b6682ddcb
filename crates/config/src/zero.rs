//! Files omit fields that are not set.
//!
//! An empty string, zero and an empty list count as not set, whether they are in the file or not. Where zero is a
//! distinct value, the field is an `Option`.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Whether a field is not set, so that it is omitted.
pub(crate) fn zero<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// For the few fields that are never omitted: they are null if they are not set.
pub(crate) mod null {
    use super::*;

    pub(crate) fn serialize<T, S>(value: &T, serializer: S) -> Result<S::Ok, S::Error>
    where
        T: Default + PartialEq + Serialize,
        S: Serializer,
    {
        if zero(value) { serializer.serialize_none() } else { value.serialize(serializer) }
    }

    pub(crate) fn deserialize<'de, T, D>(deserializer: D) -> Result<T, D::Error>
    where
        T: Default + Deserialize<'de>,
        D: Deserializer<'de>,
    {
        Option::deserialize(deserializer).map(Option::unwrap_or_default)
    }
}
