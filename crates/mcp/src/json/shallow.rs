//! The members of an object, without what is nested in them.

use std::fmt;

use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::{Map, Value};

use super::distinct::Reader;

/// How many members there may be.
pub(super) const MEMBERS: usize = 1_000;

/// An object with at most [`MEMBERS`] distinct keys. Nested arrays and objects are skipped: they are null.
pub(super) struct Shallow(pub(super) Map<String, Value>);

impl<'de> Deserialize<'de> for Shallow {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Members).map(Self)
    }
}

struct Members;

impl<'de> Visitor<'de> for Members {
    type Value = Map<String, Value>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "an object with at most {MEMBERS} distinct keys")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        let mut values = Map::new();
        while let Some((key, Scalar(value))) = members.next_entry::<String, _>()? {
            if values.len() == MEMBERS || values.insert(key, value).is_some() {
                return Err(de::Error::custom("a key is duplicated, or there are too many"));
            }
        }
        Ok(values)
    }
}

/// A string, a number or a boolean; null for everything else.
struct Scalar(Value);

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader { is_deep: false }).map(Self)
    }
}
