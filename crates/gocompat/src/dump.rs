//! Go values as text, as the library spew prints them with `%#v`: what Kubernetes' `DeepHashObject` hashes.
//!
//! Needed for as long as registries are taken over whose pods carry a hash that ToolHive's operator computed.

use std::fmt::Write;

/// `<nil>`.
const NIL: &str = "<nil>";

/// A `string`, with its type.
pub fn string(text: &str) -> String {
    format!("(string){text}")
}

/// A `[]byte`, with its type.
pub fn bytes(text: &str) -> String {
    let mut dump = String::from("([]uint8)[");
    for (index, byte) in text.bytes().enumerate() {
        let space = if index == 0 { "" } else { " " };
        // Writing to a String cannot fail.
        write!(dump, "{space}{byte}").ok();
    }
    dump.push(']');
    dump
}

/// A list without its type. An empty one is nil.
pub fn list(items: impl ExactSizeIterator<Item = String>) -> String {
    if items.len() == 0 {
        return NIL.into();
    }
    format!("[{}]", items.collect::<Vec<_>>().join(" "))
}

/// What a pointer points to, or nil.
pub fn pointer(value: Option<String>) -> String {
    value.unwrap_or_else(|| NIL.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_printed_as_spew_prints_them() {
        assert_eq!(string("a"), "(string)a");
        assert_eq!(bytes("ab"), "([]uint8)[97 98]");
        assert_eq!(list(["1", "2"].map(String::from).into_iter()), "[1 2]");
        assert_eq!(list([].into_iter()), "<nil>");
        assert_eq!(pointer(None), "<nil>");
    }
}
