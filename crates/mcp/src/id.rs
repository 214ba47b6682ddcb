//! Ids of requests.

use crate::{
    Fault,
    json::{Kind, Raw, Scanner, Text},
};

/// The id of a request as it was spelled: a string or an integer.
///
/// MCP forbids null. A fraction or an exponent is rejected, too: a server that reads `1.0` responds to `1`, and the
/// response could not be matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Id<'a> {
    /// An integer, of any size.
    Number(Raw<'a>),
    /// A string.
    Text(Text<'a>),
}

impl<'a> Id<'a> {
    pub(crate) fn new(raw: Raw<'a>) -> Result<Self, Fault> {
        match raw.kind() {
            Kind::Text => Ok(Self::Text(raw.text()?)),
            Kind::Number if !raw.as_str().contains(['.', 'e', 'E']) => Ok(Self::Number(raw)),
            _ => Err(Fault::WrongType { field: "id", expected: "a string or an integer" }),
        }
    }

    /// The id that is spelled like this, as [`Id::raw`] gives it.
    pub fn spelled(raw: &'a [u8]) -> Option<Self> {
        let mut scanner = Scanner::new(raw, u32::MAX).ok()?;
        let value = scanner.value().ok()?;
        scanner.end().ok()?;
        Self::new(value).ok()
    }

    /// The id as it was spelled.
    pub fn raw(&self) -> Raw<'a> {
        match self {
            Self::Number(raw) => *raw,
            Self::Text(text) => text.raw(),
        }
    }

    /// The id in the one spelling that compares, whatever escapes the other side uses. `1` and `"1"` differ.
    pub fn key(&self) -> String {
        match self {
            Self::Number(raw) => raw.as_str().to_owned(),
            Self::Text(text) => serde_json::Value::from(text.decoded()).to_string(),
        }
    }

    /// The id of a message that was rejected, if it can be parsed: an error response must have it.
    pub fn of_rejected(message: &'a [u8]) -> Option<Self> {
        let mut ids = Vec::new();
        let mut scanner = Scanner::new(message, u32::MAX).ok()?;
        let seen = scanner.object(|scanner, key| {
            let value = scanner.value()?;
            if key == "id" {
                ids.push(value);
            }
            Ok(())
        });
        match (seen.and_then(|_| scanner.end()), ids.as_slice()) {
            (Ok(()), [id]) => Self::new(*id).ok(),
            _ => None,
        }
    }
}
