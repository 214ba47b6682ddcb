//! Memory of the tree of a JSON text. It may be a hundred times as large as the text: `[0],` is four bytes of text,
//! and an array with room for four values.

use std::mem::size_of;

use serde_json::Value;

/// The smallest capacity of an array or object that is not empty.
const FEWEST: usize = 4;
/// The overhead of an allocation.
const ALLOCATION: usize = 16;
/// An entry of an object: its hash, its key, its value, and its places in the index.
const ENTRY: usize = 8 + size_of::<String>() + size_of::<Value>() + 16;
/// Readers of trees accept no text that is nested deeper.
const DEPTH: usize = 128;

/// Returns about how many bytes the tree of this text takes. The text is only scanned: nothing is built.
///
/// A reader of malformed JSON builds all values before the error, so these count, too.
pub fn tree_size(text: &str) -> usize {
    let bytes = text.as_bytes();
    // The number of values before the last one in each open array or object, and the size of one value.
    let mut open: Vec<(usize, usize)> = Vec::new();
    let (mut size, mut at) = (size_of::<Value>(), 0);
    while let Some(byte) = bytes.get(at) {
        at += 1;
        match byte {
            b'"' => {
                let length = string(&bytes[at..]);
                at += length + 1;
                if length > 0 {
                    size += length + ALLOCATION;
                }
            }
            b'[' | b'{' if open.len() == DEPTH => break,
            b'[' => open.push((0, size_of::<Value>())),
            b'{' => open.push((0, ENTRY)),
            b',' => {
                if let Some((values, _)) = open.last_mut() {
                    *values += 1;
                }
            }
            b']' | b'}' => {
                let is_empty = matches!(bytes[..at - 1].trim_ascii_end().last(), Some(b'[' | b'{'));
                size += open.pop().filter(|_| !is_empty).map_or(0, container);
            }
            _ => {}
        }
    }
    size + open.into_iter().map(container).sum::<usize>()
}

/// Returns the size of an array or object with this number of values before its last one, each of this size.
fn container((values, each): (usize, usize)) -> usize {
    (values + 1).next_power_of_two().max(FEWEST) * each + ALLOCATION
}

/// Returns the number of bytes before the quote that ends a string.
fn string(bytes: &[u8]) -> usize {
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => break,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    at.min(bytes.len())
}

#[cfg(test)]
mod tests {
    use proptest::{
        collection::{hash_map, vec},
        prelude::*,
        sample::Index,
    };

    use super::*;

    /// Returns a lower bound of the size of a tree, as its objects do not state their capacity.
    fn taken(value: &Value) -> usize {
        match value {
            Value::String(text) => text.capacity(),
            Value::Array(items) => {
                items.capacity() * size_of::<Value>() + items.iter().map(taken).sum::<usize>()
            }
            Value::Object(entries) => {
                let entry = |(key, value): (&String, &Value)| {
                    size_of::<(usize, String, Value)>() + key.capacity() + taken(value)
                };
                entries.iter().map(entry).sum()
            }
            _ => 0,
        }
    }

    fn dense(item: &str) -> String {
        format!("[{}]", vec![item; 10_000].join(","))
    }

    #[test]
    fn the_computed_size_bounds_the_tree_tightly() {
        for text in [
            r#"{"content": [ {"type":"text","text":"a \"quoted\" text, with [brackets] and {braces}"} ], "isError":false}"#
                .to_owned(),
            dense("0"),
            dense("[0]"),
            dense("[ ]"),
            dense("{}"),
            dense(r#"{"":0}"#),
            dense(r#"{"id":1,"name":"some name","tags":["a","b"],"parent":null}"#),
            dense(r#""\\""#),
            format!("\"{}\"", "x".repeat(100_000)),
            "7".to_owned(),
        ] {
            let tree: Value = serde_json::from_str(&text).unwrap();
            let (taken, computed) = (size_of::<Value>() + taken(&tree), tree_size(&text));
            let start = &text[..text.len().min(40)];
            assert!(taken <= computed && computed <= 8 * taken, "{start}: {taken}, and {computed} are computed");
        }
    }

    /// Returns what closes the arrays, objects and the string that are open at the end of this text.
    fn closing(text: &str) -> String {
        let (mut open, mut in_string, mut is_escaped) = (Vec::new(), false, false);
        for byte in text.chars() {
            match byte {
                _ if is_escaped => is_escaped = false,
                '\\' => is_escaped = true,
                '"' => in_string = !in_string,
                _ if in_string => {}
                '[' => open.push(']'),
                '{' => open.push('}'),
                ']' | '}' => drop(open.pop()),
                _ => {}
            }
        }
        in_string.then_some('"').into_iter().chain(open.into_iter().rev()).collect()
    }

    fn document() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<i64>().prop_map(Value::from),
            ".{0,9}".prop_map(Value::from)
        ];
        leaf.prop_recursive(5, 200, 20, |inner| {
            prop_oneof![
                vec(inner.clone(), 0..20).prop_map(Value::from),
                hash_map(".{0,5}", inner, 0..20).prop_map(|all| all.into_iter().collect()),
            ]
        })
    }

    proptest! {
        #[test]
        fn the_computed_size_of_a_prefix_bounds_what_was_built(document in document(), cut in any::<Index>()) {
            let text = document.to_string();
            let cut = text.floor_char_boundary(cut.index(text.len() + 1));
            let prefix = &text[..cut];
            // A reader has built the last complete values before the cut: a shorter prefix that can be closed.
            let built = (0..=cut).rev().filter_map(|cut| text.get(..cut)).find_map(|shorter| {
                serde_json::from_str::<Value>(&format!("{shorter}{}", closing(shorter))).ok()
            });
            let built = built.map_or(0, |tree| size_of::<Value>() + taken(&tree));
            prop_assert!(built <= tree_size(prefix), "{prefix}: {built}, and {} are computed", tree_size(prefix));
        }
    }

    #[test]
    fn malformed_text_counts_by_what_is_built_before_the_error() {
        let values = "0,".repeat(10_000);
        let (deep, deeper) = ("[".repeat(DEPTH), r#"{"":"#.repeat(DEPTH));
        for text in [
            format!("[{values}"),
            format!("[{values}]]"),
            format!("[{values}}}"),
            format!(r#"{{"a":{{"b":[{values}"#),
            format!("[{values}{deep}"),
            format!("[{values}{deeper}"),
            format!("[{values}\""),
            format!("[{}", dense("0")),
        ] {
            assert!(serde_json::from_str::<Value>(&text).is_err());
            assert!(tree_size(&text) >= 10_000 * size_of::<Value>(), "{}", &text[..9]);
        }
    }

    #[test]
    fn malformed_text_without_values_is_small() {
        for text in
            ["", "]", "}{", "\"", "\"\\", ",", "[", "[,]", &"[".repeat(1 << 20), &"{\"".repeat(1 << 20)]
        {
            assert!(tree_size(text) < 4 << 20, "{}", &text[..text.len().min(9)]);
        }
    }
}
