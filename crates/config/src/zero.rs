//! The rule of the files: what is not set is left out.
//!
//! A text that is empty, a number that is zero, a list without items: each says "not set", whether it is written or
//! not. Where zero is a value of its own, the field is an `Option`.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Whether a field says nothing, so that it is left out.
pub(crate) fn zero<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// For the few fields that are never left out: they are written as null when they say nothing.
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
