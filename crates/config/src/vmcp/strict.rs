//! Parts of other files, in which unknown keys are ignored. Here they are an error.

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, Error, Visitor, value},
    forward_to_deserialize_any,
};
use serde_json::{Map, Value};

/// Deserialises a part, and refuses unknown keys.
pub(super) fn known<'de, T, D>(deserializer: D) -> Result<Option<T>, D::Error>
where
    T: DeserializeOwned,
    D: Deserializer<'de>,
{
    let Some(map) = Option::<Map<String, Value>>::deserialize(deserializer)? else { return Ok(None) };
    let fields = fields::<T>();
    if let Some(key) = map.keys().find(|key| !fields.contains(&key.as_str())) {
        return Err(D::Error::unknown_field(key, fields));
    }
    T::deserialize(Value::Object(map)).map(Some).map_err(D::Error::custom)
}

/// The keys of a struct.
fn fields<T: DeserializeOwned>() -> &'static [&'static str] {
    let mut fields: &[&str] = &[];
    // It always fails after it has recorded the keys.
    let _ = T::deserialize(FieldNames(&mut fields));
    fields
}

/// A deserializer that records the keys of the struct it is called for.
struct FieldNames<'a>(&'a mut &'static [&'static str]);

impl<'de> Deserializer<'de> for FieldNames<'_> {
    type Error = value::Error;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Self::Error> {
        Err(value::Error::custom("only structs have keys"))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        *self.0 = fields;
        self.deserialize_any(visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}
