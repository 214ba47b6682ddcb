//! A message in which values are replaced. It may have many megabytes, so the router only decides what is replaced, and the message is
//! copied without its lock: otherwise all other requests would wait.

use skep_mcp::{Edits, Json, Raw};

/// The values that are replaced: at most two.
#[derive(Default)]
pub(super) struct Replaced<'a>([Option<(Raw<'a>, Value)>; 2]);

enum Value {
    Number(u64),
    /// As it is spelt.
    Spelled(Box<str>),
    Text(Box<str>),
}

impl<'a> Replaced<'a> {
    pub(super) fn by_number(place: Raw<'a>, number: u64) -> Self {
        Self([Some((place, Value::Number(number))), None])
    }

    /// By the JSON of another value.
    pub(super) fn by_spelled(place: Raw<'a>, value: Raw<'_>) -> Self {
        Self([Some((place, Value::Spelled(value.as_str().into()))), None])
    }

    pub(super) fn by_text(place: Raw<'a>, text: &str) -> Self {
        Self([Some((place, Value::Text(text.into()))), None])
    }

    /// The first of both.
    pub(super) fn and(self, other: Self) -> Self {
        let ([first, _], [second, _]) = (self.0, other.0);
        Self([first, second])
    }

    /// A copy of the message, of which the places must be parts.
    pub(super) fn in_message(&self, message: &[u8]) -> Option<Vec<u8>> {
        let mut edits = Edits::of(message);
        for (place, value) in self.0.iter().flatten() {
            let json = match value {
                Value::Number(number) => Json::Number(*number),
                Value::Spelled(value) => Json::Raw(Raw::spelled(value)?),
                Value::Text(text) => Json::Text(text),
            };
            edits = edits.replace(*place, json);
        }
        edits.bytes().ok()
    }
}
