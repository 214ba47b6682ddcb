//! Changes of single values in a message that otherwise stays as it was received.

use std::{borrow::Cow, ops::Range};

use crate::json::Raw;

/// A value to put in the place of another.
#[derive(Clone, Copy)]
pub enum Json<'a> {
    /// One that was received, spelled as it was.
    Raw(Raw<'a>),
    /// A string.
    Text(&'a str),
    /// A number.
    Number(u64),
}

impl<'a> Json<'a> {
    pub(crate) fn written(self) -> Cow<'a, str> {
        match self {
            Self::Raw(raw) => Cow::Borrowed(raw.as_str()),
            Self::Text(text) => Cow::Owned(serde_json::Value::from(text).to_string()),
            Self::Number(number) => Cow::Owned(number.to_string()),
        }
    }
}

/// Changes that cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpliceError {
    /// The value that is to be replaced was read from other bytes.
    #[error("a value to replace is not of this message")]
    Foreign,
    /// One is inside another, or both are the same.
    #[error("two values to replace overlap")]
    Overlap,
}

/// Values of a message to replace.
///
/// ```
/// # use skep_mcp::{Edits, Envelope, Json};
/// let received = br#"{"jsonrpc":"2.0", "id":7 , "method":"ping"}"#;
/// let envelope = Envelope::parse(received)?;
/// let id = envelope.id().unwrap();
/// let sent = Edits::of(received).replace(id.raw(), Json::Text("a|7")).bytes()?;
/// assert_eq!(sent, br#"{"jsonrpc":"2.0", "id":"a|7" , "method":"ping"}"#);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Edits<'a> {
    bytes: &'a [u8],
    changes: Vec<Change<'a>>,
    foreign: bool,
}

#[derive(Clone)]
struct Change<'a> {
    range: Range<usize>,
    with: Cow<'a, str>,
}

impl<'a> Edits<'a> {
    /// None yet, of this message.
    pub fn of(bytes: &'a [u8]) -> Self {
        Self { bytes, changes: Vec::new(), foreign: false }
    }

    /// Another value in the place of this one.
    #[must_use]
    pub fn replace(mut self, value: Raw<'_>, with: Json<'a>) -> Self {
        self.put(value, with);
        self
    }

    pub(crate) fn put(&mut self, value: Raw<'_>, with: Json<'a>) {
        self.foreign |= self.bytes.get(value.range()) != Some(value.as_str().as_bytes());
        self.change(value.range(), with.written());
    }

    pub(crate) fn change(&mut self, range: Range<usize>, with: Cow<'a, str>) {
        self.changes.push(Change { range, with });
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// The message with the changes made.
    pub fn bytes(mut self) -> Result<Vec<u8>, SpliceError> {
        if self.foreign {
            return Err(SpliceError::Foreign);
        }
        self.changes.sort_by_key(|change| change.range.start);
        let added: usize = self.changes.iter().map(|change| change.with.len()).sum();
        let mut sent = Vec::with_capacity(self.bytes.len() + added);
        let mut done = 0;
        for Change { range, with } in &self.changes {
            let before = self.bytes.get(done..range.start).ok_or(SpliceError::Overlap)?;
            sent.extend_from_slice(before);
            sent.extend_from_slice(with.as_bytes());
            done = range.end;
        }
        sent.extend_from_slice(&self.bytes[done..]);
        Ok(sent)
    }
}
