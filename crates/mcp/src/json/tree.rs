//! How much memory the tree of a JSON text takes. It may be a hundred times as large as the text: `[0],` is four bytes of text, and an
//! array with room for four values.

use std::mem::size_of;

use serde_json::Value;

/// An array or object has room for so many values at least, once it has one.
const FEWEST: usize = 4;
/// What an allocation takes beside its bytes.
const ALLOCATION: usize = 16;
/// An entry of an object: its hash, its key, its value, and its places in the index.
const ENTRY: usize = 8 + size_of::<String>() + size_of::<Value>() + 16;
/// Readers of trees accept no text that is nested deeper.
const DEPTH: usize = 128;

/// About how many bytes the tree of this text takes, if it is JSON: it is only scanned, and nothing is built.
pub fn tree_size(text: &str) -> usize {
    let bytes = text.as_bytes();
    // How many values each array or object that is open has before its last one, and what one takes.
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
            b'[' | b'{' if open.len() == DEPTH => return size,
            b'[' => open.push((0, size_of::<Value>())),
            b'{' => open.push((0, ENTRY)),
            b',' => {
                if let Some((values, _)) = open.last_mut() {
                    *values += 1;
                }
            }
            b']' | b'}' => {
                let is_empty = matches!(bytes[..at - 1].trim_ascii_end().last(), Some(b'[' | b'{'));
                let Some((values, each)) = open.pop().filter(|_| !is_empty) else { continue };
                size += (values + 1).next_power_of_two().max(FEWEST) * each + ALLOCATION;
            }
            _ => {}
        }
    }
    size
}

/// How many bytes there are before the quote that ends a string.
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
    use super::*;

    /// What a tree takes: at least, as its objects do not say for how many entries they have room.
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

    #[test]
    fn a_tree_takes_no_more_than_what_is_computed_from_its_text_and_not_much_less() {
        let dense = |item: &str| format!("[{}]", vec![item; 10_000].join(","));
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

    #[test]
    fn what_is_no_json_or_too_deep_has_some_size() {
        for text in
            ["", "]", "}{", "\"", "\"\\", ",", "[", "[,]", &"[".repeat(1 << 20), &"{\"".repeat(1 << 20)]
        {
            assert!(tree_size(text) < 4 << 20, "{}", &text[..text.len().min(9)]);
        }
    }
}
