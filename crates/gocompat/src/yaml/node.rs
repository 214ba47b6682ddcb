//! A document as a tree that knows the order of its keys.

use std::fmt::Display;

use serde::{
    Serialize,
    ser::{self, Impossible, SerializeMap, SerializeSeq, SerializeStruct},
};

use super::{keys, scalar};

/// A value of a document.
pub(super) enum Node {
    /// A number, a truth value or nothing, as it is written.
    Plain(String),
    Text(String),
    List(Vec<Node>),
    Mapping(Vec<(String, Node)>),
}

impl Node {
    /// A value that stands on the line of its key or dash. Lines of a text have this depth.
    pub(super) fn inline(&self, depth: usize) -> String {
        match self {
            Self::Plain(text) => text.clone(),
            Self::Text(text) => scalar::value(text, depth),
            Self::List(_) => "[]".into(),
            Self::Mapping(_) => "{}".into(),
        }
    }
}

/// Makes a tree of a value: keys of structs stay in their order, others are sorted.
pub(super) struct ToNode;

/// Why there is no tree.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Unwritable(String);

impl ser::Error for Unwritable {
    fn custom<T: Display>(message: T) -> Self {
        Self(message.to_string())
    }
}

type Made = Result<Node, Unwritable>;
type Never = Impossible<Node, Unwritable>;

fn plain(value: impl Display) -> Made {
    Ok(Node::Plain(value.to_string()))
}

fn unknown<T>() -> Result<T, Unwritable> {
    Err(Unwritable("configuration files have no such type".into()))
}

impl ser::Serializer for ToNode {
    type Ok = Node;
    type Error = Unwritable;
    type SerializeSeq = Items;
    type SerializeTuple = Never;
    type SerializeTupleStruct = Never;
    type SerializeTupleVariant = Never;
    type SerializeMap = Entries;
    type SerializeStruct = Entries;
    type SerializeStructVariant = Never;

    fn serialize_bool(self, value: bool) -> Made {
        plain(value)
    }
    fn serialize_i8(self, value: i8) -> Made {
        plain(value)
    }
    fn serialize_i16(self, value: i16) -> Made {
        plain(value)
    }
    fn serialize_i32(self, value: i32) -> Made {
        plain(value)
    }
    fn serialize_i64(self, value: i64) -> Made {
        plain(value)
    }
    fn serialize_u8(self, value: u8) -> Made {
        plain(value)
    }
    fn serialize_u16(self, value: u16) -> Made {
        plain(value)
    }
    fn serialize_u32(self, value: u32) -> Made {
        plain(value)
    }
    fn serialize_u64(self, value: u64) -> Made {
        plain(value)
    }
    fn serialize_f32(self, value: f32) -> Made {
        self.serialize_f64(value.into())
    }
    fn serialize_f64(self, value: f64) -> Made {
        plain(float(value))
    }
    fn serialize_char(self, value: char) -> Made {
        Ok(Node::Text(value.into()))
    }
    fn serialize_str(self, value: &str) -> Made {
        Ok(Node::Text(value.into()))
    }
    fn serialize_bytes(self, _: &[u8]) -> Made {
        unknown()
    }
    fn serialize_none(self) -> Made {
        plain("null")
    }
    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Made {
        value.serialize(self)
    }
    fn serialize_unit(self) -> Made {
        plain("null")
    }
    fn serialize_unit_struct(self, _: &'static str) -> Made {
        plain("null")
    }
    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Made {
        Ok(Node::Text(variant.into()))
    }
    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Made {
        value.serialize(self)
    }
    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Made {
        unknown()
    }
    fn serialize_seq(self, length: Option<usize>) -> Result<Items, Unwritable> {
        Ok(Items(Vec::with_capacity(length.unwrap_or_default())))
    }
    fn serialize_tuple(self, _: usize) -> Result<Never, Unwritable> {
        unknown()
    }
    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Never, Unwritable> {
        unknown()
    }
    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Never, Unwritable> {
        unknown()
    }
    fn serialize_map(self, _: Option<usize>) -> Result<Entries, Unwritable> {
        Ok(Entries { entries: Vec::new(), key: String::new() })
    }
    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Entries, Unwritable> {
        Ok(Entries { entries: Vec::new(), key: String::new() })
    }
    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Never, Unwritable> {
        unknown()
    }
}

/// A list that is being made.
pub(super) struct Items(Vec<Node>);

impl SerializeSeq for Items {
    type Ok = Node;
    type Error = Unwritable;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Unwritable> {
        self.0.push(value.serialize(ToNode)?);
        Ok(())
    }

    fn end(self) -> Made {
        Ok(Node::List(self.0))
    }
}

/// A mapping that is being made.
pub(super) struct Entries {
    entries: Vec<(String, Node)>,
    /// The key whose value comes next.
    key: String,
}

impl SerializeStruct for Entries {
    type Ok = Node;
    type Error = Unwritable;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        key: &'static str,
        value: &T,
    ) -> Result<(), Unwritable> {
        self.entries.push((key.into(), value.serialize(ToNode)?));
        Ok(())
    }

    fn end(self) -> Made {
        Ok(Node::Mapping(self.entries))
    }
}

impl SerializeMap for Entries {
    type Ok = Node;
    type Error = Unwritable;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Unwritable> {
        match key.serialize(ToNode)? {
            Node::Text(text) | Node::Plain(text) => self.key = text,
            Node::List(_) | Node::Mapping(_) => return unknown(),
        }
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Unwritable> {
        self.entries.push((std::mem::take(&mut self.key), value.serialize(ToNode)?));
        Ok(())
    }

    fn end(mut self) -> Made {
        self.entries.sort_by(|(a, _), (b, _)| keys::compare(a, b));
        Ok(Node::Mapping(self.entries))
    }
}

/// A number with a point, as short as it can be: with an exponent from a million on, and below a ten-thousandth.
fn float(value: f64) -> String {
    let written = format!("{value:e}");
    let Some((mantissa, exponent)) = written.split_once('e') else { return written };
    match exponent.parse::<i32>() {
        Ok(exponent) if !(-4..6).contains(&exponent) => {
            format!("{mantissa}e{}{:02}", sign(exponent), exponent.abs())
        }
        _ => value.to_string(),
    }
}

fn sign(exponent: i32) -> char {
    if exponent < 0 { '-' } else { '+' }
}

#[cfg(test)]
mod tests {
    use super::float;

    #[test]
    fn numbers_are_as_short_as_go_makes_them() {
        for (number, written) in [
            (0.0, "0"),
            (-3.0, "-3"),
            (0.05, "0.05"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (100_000.0, "100000"),
            (1_000_000.0, "1e+06"),
            (1_234_567.0, "1.234567e+06"),
            (123_456_789.0, "1.23456789e+08"),
            (1e21, "1e+21"),
        ] {
            assert_eq!(float(number), written);
        }
    }
}
