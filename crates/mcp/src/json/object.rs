//! Objects that are written.

use std::fmt::Write;

/// An object of JSON that is written member by member.
#[derive(Debug, Default)]
pub struct Object(String);

impl Object {
    /// Adds a member. Both are JSON.
    pub fn put(&mut self, key: &str, value: &str) {
        let comma = if self.0.is_empty() { "" } else { "," };
        write!(self.0, "{comma}{key}:{value}").ok();
    }

    /// Whether it has no member.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The object, as JSON.
    pub fn json(&self) -> String {
        format!("{{{}}}", self.0)
    }
}
