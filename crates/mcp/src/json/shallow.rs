//! The members of an object, without what is nested in them.

use std::{borrow::Cow, collections::HashSet, fmt};

use serde::de::{self, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::{Map, Value};

use super::distinct::Reader;

/// How many members an object may have that is read one by one.
pub(crate) const MEMBERS: usize = 1_000;

/// Reads an object with at most [`MEMBERS`] distinct keys. Of these, the selected ones are kept: strings, numbers and booleans, and null
/// for everything else. The others are skipped, and nothing is stored for them but their keys.
pub(super) struct Shallow<F>(pub(super) F);

impl<'de, F: Fn(&str) -> bool> DeserializeSeed<'de> for Shallow<F> {
    type Value = Map<String, Value>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, F: Fn(&str) -> bool> Visitor<'de> for Shallow<F> {
    type Value = Map<String, Value>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "an object with at most {MEMBERS} distinct keys")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        let (mut values, mut keys) = (Map::new(), HashSet::new());
        while let Some(key) = members.next_key_seed(Key)? {
            if self.0(&key) {
                values.insert(key.clone().into_owned(), members.next_value_seed(Scalar)?);
            } else {
                members.next_value::<IgnoredAny>()?;
            }
            if keys.len() == MEMBERS || !keys.insert(key) {
                return Err(de::Error::custom("a key is duplicated, or there are too many"));
            }
        }
        Ok(values)
    }
}

/// A key, which is not copied unless it has escapes.
struct Key;

impl<'de> DeserializeSeed<'de> for Key {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Key {
    type Value = Cow<'de, str>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a key")
    }

    fn visit_borrowed_str<E>(self, key: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(key))
    }

    fn visit_str<E>(self, key: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(key.to_owned()))
    }
}

/// A string, a number or a boolean; null for everything else.
struct Scalar;

impl<'de> DeserializeSeed<'de> for Scalar {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(Reader { is_deep: false })
    }
}
