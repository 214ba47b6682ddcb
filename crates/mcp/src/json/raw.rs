//! One value, as it was spelled.

use std::{borrow::Cow, fmt, ops::Range};

use serde::de::DeserializeSeed;
use serde_json::{Map, Value};

use super::{Field, Fields, Scanner, Text, distinct::Distinct, shallow::Shallow};
use crate::Fault;

/// One JSON value as it was received, and its place in the message.
///
/// A reader parses it from [`as_str`](Self::as_str); to forward it, nothing is to be done.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Raw<'a> {
    text: &'a str,
    start: usize,
}

/// What kind of value it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `{…}`
    Object,
    /// `[…]`
    Array,
    /// `"…"`
    Text,
    /// A number.
    Number,
    /// `true` or `false`
    Bool,
    /// `null`
    Null,
}

impl<'a> Raw<'a> {
    /// The text must be one JSON value without white space around it.
    pub(crate) fn new(text: &'a str, start: usize) -> Self {
        Self { text, start }
    }

    /// The value that is spelled like this, as [`Raw::as_str`] gives it.
    pub fn spelled(text: &'a str) -> Option<Self> {
        let mut scanner = Scanner::new(text.as_bytes(), u32::MAX).ok()?;
        let value = scanner.value().ok()?;
        scanner.end().ok()?;
        Some(value)
    }

    /// The value as it was spelled.
    pub fn as_str(&self) -> &'a str {
        self.text
    }

    /// Which bytes of the message these are.
    pub fn range(&self) -> Range<usize> {
        self.start..self.start + self.text.len()
    }

    /// What kind of value it is, by its first byte.
    pub fn kind(&self) -> Kind {
        match self.text.as_bytes().first() {
            Some(b'{') => Kind::Object,
            Some(b'[') => Kind::Array,
            Some(b'"') => Kind::Text,
            Some(b't' | b'f') => Kind::Bool,
            Some(b'n') => Kind::Null,
            _ => Kind::Number,
        }
    }

    /// The string that this is. A fault if it is none, or if it has half of a surrogate pair, which one server
    /// replaces, another keeps and a third refuses.
    pub(crate) fn text(self) -> Result<Text<'a>, Fault> {
        Text::new(self)
    }

    /// The string that it is, if it is one.
    pub fn as_text(self) -> Option<Cow<'a, str>> {
        Some(Text::new(self).ok()?.decoded())
    }

    /// The members of an object, in their order. Other values have none.
    pub fn entries(self) -> Result<Vec<(Text<'a>, Self)>, Fault> {
        let mut entries = Vec::new();
        self.for_each_entry(|key, value| entries.push((key, value)))?;
        Ok(entries)
    }

    /// Calls `entry` with each member of an object, in their order, and collects nothing. Other values have none.
    pub fn for_each_entry(self, mut entry: impl FnMut(Text<'a>, Self)) -> Result<(), Fault> {
        if self.kind() == Kind::Object {
            Scanner::within(self).object(|scanner, key| {
                entry(key, scanner.value()?);
                Ok(())
            })?;
        }
        Ok(())
    }

    /// The items of an array. Other values have none.
    pub fn items(self) -> Result<Vec<Self>, Fault> {
        let mut items = Vec::new();
        if self.kind() == Kind::Array {
            Scanner::within(self).array(|scanner| {
                items.push(scanner.value()?);
                Ok(())
            })?;
        }
        Ok(items)
    }

    /// The member of an object that has this key. If several have it, none does: readers differ in which one they use.
    pub fn get(self, key: &str) -> Option<Self> {
        let (mut found, mut count) = (None, 0);
        if self.kind() == Kind::Object {
            let object = Scanner::within(self).object(|scanner, name| {
                let value = scanner.value()?;
                if name.decoded() == key {
                    (found, count) = (Some(value), count + 1);
                }
                Ok(())
            });
            object.ok()?;
        }
        found.filter(|_| count == 1)
    }

    /// The value, if it means the same to every reader.
    pub(crate) fn value(self, field: &'static str) -> Result<Value, Fault> {
        match serde_json::from_str(self.text) {
            Ok(Distinct(value)) => Ok(value),
            Err(_) => Err(Fault::Ambiguous(field)),
        }
    }

    /// The selected members of this object, if they mean the same to every reader, without what is nested in them. Null has none.
    pub(crate) fn members(
        self,
        field: &'static str,
        is_selected: impl Fn(&str) -> bool,
    ) -> Result<Option<Map<String, Value>>, Fault> {
        match self.kind() {
            Kind::Object => {}
            Kind::Null => return Ok(None),
            // Some servers parse a text, or take what is close to an object for one.
            _ => return Err(Fault::WrongType { field, expected: "an object" }),
        }
        // The text is one value: there is nothing after it.
        let members = Shallow(is_selected).deserialize(&mut serde_json::Deserializer::from_str(self.text));
        members.map(Some).map_err(|_| Fault::Ambiguous(field))
    }

    /// The value of one key of this object, if it is one.
    pub(crate) fn member(self, field: &'static [Field; 1]) -> Result<Option<Raw<'a>>, Fault> {
        Ok(self.read(field)?.value(0))
    }

    /// The same for a policy, which must see what every server sees. Null is none.
    pub(crate) fn decided_member(self, field: &'static [Field; 1]) -> Result<Option<Raw<'a>>, Fault> {
        let fields = self.read(field)?;
        fields.check_case([0])?;
        Ok(fields.value(0).filter(|value| value.kind() != Kind::Null))
    }

    fn read(self, field: &'static [Field; 1]) -> Result<Fields<'a, 1>, Fault> {
        let mut fields = Fields::new(field);
        if self.kind() == Kind::Object {
            Scanner::within(self).object(|scanner, key| fields.take(scanner, key))?;
        }
        Ok(fields)
    }
}

/// Without the value, which must not be logged.
impl fmt::Debug for Raw<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:?} at {:?}", self.kind(), self.range())
    }
}
