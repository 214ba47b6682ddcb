//! Keys as `encoding/json` matches them: exactly, or else without regard to case.
//!
//! Needed permanently: people write such files for ToolHive, and a key that is silently ignored can be a check that is
//! silently dropped. Unlike in Go, a field that is set twice is an error, whatever the case of its keys.

use serde::{
    Deserializer,
    de::{
        DeserializeOwned, DeserializeSeed, EnumAccess, Error, MapAccess, SeqAccess, VariantAccess, Visitor,
    },
    forward_to_deserialize_any,
};

/// A value of this JSON text.
pub fn from_str<T: DeserializeOwned>(text: &str) -> serde_json::Result<T> {
    let mut json = serde_json::Deserializer::from_str(text);
    let value = T::deserialize(Folded(&mut json))?;
    json.end()?;
    Ok(value)
}

/// A value of this document.
pub fn from_value<T: DeserializeOwned>(document: &serde_json::Value) -> serde_json::Result<T> {
    T::deserialize(Folded(document))
}

/// The field that a key means: the one of this name, or else the first that differs in case only.
fn field<'a>(key: &'a str, fields: &'static [&'static str]) -> &'a str {
    if fields.contains(&key) {
        return key;
    }
    fields.iter().find(|field| folded(field).eq(folded(key))).copied().unwrap_or(key)
}

fn folded(text: &str) -> impl Iterator<Item = char> {
    text.chars().map(|c| match c {
        // The two letters beyond ASCII that Unicode folds to ASCII.
        '\u{17f}' => 's',
        '\u{212a}' => 'k',
        c => c.to_ascii_lowercase(),
    })
}

/// A deserializer, a visitor, an access or a seed, below which all keys of structs are matched so.
struct Folded<T>(T);

/// The same for a struct of these fields.
struct Struct<T> {
    inner: T,
    fields: &'static [&'static str],
}

macro_rules! forward {
    ($($method:ident($($name:ident: $type:ty),*);)+) => {
        $(fn $method<V: Visitor<'de>>(self, $($name: $type,)* visitor: V) -> Result<V::Value, D::Error> {
            self.0.$method($($name,)* Struct { inner: visitor, fields: &[] })
        })+
    };
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Folded<D> {
    type Error = D::Error;

    forward! {
        deserialize_any();
        deserialize_bool();
        deserialize_i8();
        deserialize_i16();
        deserialize_i32();
        deserialize_i64();
        deserialize_i128();
        deserialize_u8();
        deserialize_u16();
        deserialize_u32();
        deserialize_u64();
        deserialize_u128();
        deserialize_f32();
        deserialize_f64();
        deserialize_char();
        deserialize_str();
        deserialize_string();
        deserialize_bytes();
        deserialize_byte_buf();
        deserialize_option();
        deserialize_unit();
        deserialize_seq();
        deserialize_map();
        deserialize_identifier();
        deserialize_ignored_any();
        deserialize_tuple(len: usize);
        deserialize_unit_struct(name: &'static str);
        deserialize_newtype_struct(name: &'static str);
        deserialize_tuple_struct(name: &'static str, len: usize);
        deserialize_enum(name: &'static str, variants: &'static [&'static str]);
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_struct(name, fields, Struct { inner: visitor, fields })
    }

    fn is_human_readable(&self) -> bool {
        self.0.is_human_readable()
    }
}

macro_rules! visit {
    ($($method:ident($type:ty);)+) => {
        $(fn $method<E: Error>(self, value: $type) -> Result<V::Value, E> {
            self.inner.$method(value)
        })+
    };
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Struct<V> {
    type Value = V::Value;

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.inner.expecting(formatter)
    }

    visit! {
        visit_bool(bool);
        visit_i8(i8);
        visit_i16(i16);
        visit_i32(i32);
        visit_i64(i64);
        visit_i128(i128);
        visit_u8(u8);
        visit_u16(u16);
        visit_u32(u32);
        visit_u64(u64);
        visit_u128(u128);
        visit_f32(f32);
        visit_f64(f64);
        visit_char(char);
        visit_str(&str);
        visit_borrowed_str(&'de str);
        visit_string(String);
        visit_bytes(&[u8]);
        visit_borrowed_bytes(&'de [u8]);
        visit_byte_buf(Vec<u8>);
    }

    fn visit_none<E: Error>(self) -> Result<V::Value, E> {
        self.inner.visit_none()
    }

    fn visit_unit<E: Error>(self) -> Result<V::Value, E> {
        self.inner.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<V::Value, D::Error> {
        self.inner.visit_some(Folded(deserializer))
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<V::Value, D::Error> {
        self.inner.visit_newtype_struct(Folded(deserializer))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, access: A) -> Result<V::Value, A::Error> {
        self.inner.visit_seq(Folded(access))
    }

    fn visit_map<A: MapAccess<'de>>(self, access: A) -> Result<V::Value, A::Error> {
        self.inner.visit_map(Struct { inner: access, fields: self.fields })
    }

    fn visit_enum<A: EnumAccess<'de>>(self, access: A) -> Result<V::Value, A::Error> {
        self.inner.visit_enum(Folded(access))
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Folded<S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<S::Value, D::Error> {
        self.0.deserialize(Folded(deserializer))
    }
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Folded<A> {
    type Error = A::Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        self.0.next_element_seed(Folded(seed))
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Struct<A> {
    type Error = A::Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        if self.fields.is_empty() {
            return self.inner.next_key_seed(seed);
        }
        self.inner.next_key_seed(Key { inner: seed, fields: self.fields })
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        self.inner.next_value_seed(Folded(seed))
    }
}

impl<'de, A: EnumAccess<'de>> EnumAccess<'de> for Folded<A> {
    type Error = A::Error;
    type Variant = Folded<A::Variant>;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self::Variant), A::Error> {
        self.0.variant_seed(seed).map(|(value, variant)| (value, Folded(variant)))
    }
}

impl<'de, A: VariantAccess<'de>> VariantAccess<'de> for Folded<A> {
    type Error = A::Error;

    fn unit_variant(self) -> Result<(), A::Error> {
        self.0.unit_variant()
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, A::Error> {
        self.0.newtype_variant_seed(Folded(seed))
    }

    fn tuple_variant<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, A::Error> {
        self.0.tuple_variant(len, Struct { inner: visitor, fields: &[] })
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        self.0.struct_variant(fields, Struct { inner: visitor, fields })
    }
}

/// The key of a field: as a seed, then as a deserializer, then as a visitor.
struct Key<T> {
    inner: T,
    fields: &'static [&'static str],
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Key<S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<S::Value, D::Error> {
        self.inner.deserialize(Key { inner: deserializer, fields: self.fields })
    }
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Key<D> {
    type Error = D::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.inner.deserialize_identifier(Key { inner: visitor, fields: self.fields })
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Key<V> {
    type Value = V::Value;

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.inner.expecting(formatter)
    }

    fn visit_str<E: Error>(self, key: &str) -> Result<V::Value, E> {
        self.inner.visit_str(field(key, self.fields))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;
    use serde_json::json;

    use super::*;
    use crate::Json;

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(default, rename_all = "PascalCase")]
    struct File {
        issuer: String,
        #[serde(rename = "JWKSURL")]
        keys: Option<String>,
        nested: Vec<Nested>,
        map: BTreeMap<String, Nested>,
        raw: Option<Json>,
        choice: Option<Choice>,
    }

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(default)]
    struct Nested {
        a: u32,
        #[serde(rename = "A")]
        other: u32,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    enum Choice {
        Plain,
        Fields { number: i64 },
    }

    #[test]
    fn keys_match_in_any_case_at_any_depth_and_an_exact_match_comes_first() {
        let text = r#"{"issuer": "i", "JwksUrl": "k", "NESTED": [{"a": 1, "A": 2}], "map": {"Key": {"A": 3}},
            "raw": {"Keep": 1.50, "keep": 2}, "CHOICE": {"Fields": {"Number": 4}}, "unknown": {"x": [1]}}"#;
        let file: File = from_str(text).unwrap();
        let expected = File {
            issuer: "i".into(),
            keys: Some("k".into()),
            nested: vec![Nested { a: 1, other: 2 }],
            map: [("Key".to_owned(), Nested { a: 0, other: 3 })].into(),
            raw: Some(serde_json::from_str(r#"{"Keep":1.50,"keep":2}"#).unwrap()),
            choice: Some(Choice::Fields { number: 4 }),
        };
        assert_eq!(file, expected);
        // The long s and the Kelvin sign.
        let file: File = from_str("{\"i\u{17f}\u{17f}uer\": \"i\", \"JW\u{212a}SURL\": \"k\"}").unwrap();
        assert_eq!((file.issuer.as_str(), file.keys.as_deref()), ("i", Some("k")));
        let file: File = from_value(&json!({"ISSUER": "i", "choice": "Plain"})).unwrap();
        assert_eq!((file.issuer.as_str(), file.choice), ("i", Some(Choice::Plain)));
    }

    #[test]
    fn a_field_that_is_set_twice_and_text_after_the_value_are_errors() {
        let error = from_str::<File>(r#"{"Issuer": "a", "issuer": ""}"#).unwrap_err().to_string();
        assert!(error.starts_with("duplicate field `Issuer`"), "{error}");
        assert!(from_str::<File>("{} {}").is_err());
    }
}
