//! The keys of an object that decisions are made on.

use super::{Raw, Scanner, Text, text::Spelling};
use crate::Fault;

/// A key that is read, and its name in messages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Field {
    pub(crate) key: &'static str,
    pub(crate) path: &'static str,
}

/// What an object holds under the keys that are read.
///
/// A policy must see the value that the server will use. Of two equal keys, some servers take the first and some the
/// last; a server that ignores case (Go's encoding/json does) may take `"Name"` although there is a `"name"`. So two
/// keys that are equal ignoring case are a fault. A single key in the wrong case is recorded: it is a fault where a policy
/// reads the value, since it would be absent for the policy and present for such a server. Elsewhere it is not.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fields<'a, const N: usize> {
    fields: &'static [Field; N],
    values: [Option<Raw<'a>>; N],
    seen: u32,
    lookalikes: u32,
}

impl<'a, const N: usize> Fields<'a, N> {
    pub(crate) fn new(fields: &'static [Field; N]) -> Self {
        const { assert!(N <= 32) };
        Self { fields, values: [None; N], seen: 0, lookalikes: 0 }
    }

    /// Those of an object that was read before.
    pub(crate) fn read_before(fields: &'static [Field; N], values: [Option<Raw<'a>>; N]) -> Self {
        Self { fields, values, seen: 0, lookalikes: 0 }
    }

    pub(crate) fn values(&self) -> [Option<Raw<'a>>; N] {
        self.values
    }

    pub(crate) fn value(&self, index: usize) -> Option<Raw<'a>> {
        self.values[index]
    }

    pub(crate) fn put(&mut self, index: usize, value: Raw<'a>) {
        self.values[index] = Some(value);
    }

    /// Takes the value of this key, and keeps it if it is read.
    pub(crate) fn take(&mut self, scanner: &mut Scanner<'a>, key: Text<'a>) -> Result<(), Fault> {
        let index = self.index(key)?;
        let value = scanner.value()?;
        if let Some(index) = index {
            self.put(index, value);
        }
        Ok(())
    }

    /// Which of the keys this is.
    pub(crate) fn index(&mut self, key: Text<'_>) -> Result<Option<usize>, Fault> {
        let key = key.key();
        for (index, field) in self.fields.iter().enumerate() {
            let spelling = key.spelling(field.key);
            if spelling == Spelling::Different {
                continue;
            }
            let bit = 1 << index;
            if self.seen & bit != 0 {
                return Err(Fault::Duplicate(field.path));
            }
            self.seen |= bit;
            if spelling == Spelling::Exact {
                return Ok(Some(index));
            }
            self.lookalikes |= bit;
            return Ok(None);
        }
        Ok(None)
    }

    /// A fault if one of these keys has the wrong case.
    pub(crate) fn check_case(&self, indices: impl IntoIterator<Item = usize>) -> Result<(), Fault> {
        match indices.into_iter().find(|index| self.lookalikes & (1 << index) != 0) {
            Some(index) => Err(Fault::Lookalike(self.fields[index].path)),
            None => Ok(()),
        }
    }
}
