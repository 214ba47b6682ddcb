//! YAML in the style of Go's `yaml.v3`: the order of keys, the indentation, and when a string is quoted.
//!
//! Needed for as long as virtual MCP servers that ToolHive's operator started are taken over: their pods carry a checksum of
//! the text.

mod keys;
mod node;
mod scalar;

use serde::{Serialize, ser::Error as _};

use node::{Node, ToNode};

/// Why a document cannot be written.
pub type Error = serde_json::Error;

/// How far a mapping is indented, and the step to which a list within one is.
const INDENT: usize = 4;

/// The text of a file, byte for byte as Go's encoder (yaml.v3) would write it.
pub fn render<T: Serialize>(document: &T) -> Result<String, Error> {
    let node = document.serialize(ToNode).map_err(|error| Error::custom(error.to_string()))?;
    let mut text = String::new();
    match &node {
        Node::Mapping(entries) if !entries.is_empty() => mapping(&mut text, entries, 0, true),
        Node::List(items) if !items.is_empty() => list(&mut text, items, 0, true),
        other => text.push_str(&other.inline(INDENT)),
    }
    text.push('\n');
    Ok(text)
}

/// Where what is within a value begins, which itself begins at `depth`: the next step.
fn step(depth: usize) -> usize {
    (depth / INDENT + 1) * INDENT
}

/// Writes entries. The first one stands on the line that is begun already, if it is said so.
fn mapping(text: &mut String, entries: &[(String, Node)], depth: usize, on_line: bool) {
    for (index, (key, value)) in entries.iter().enumerate() {
        if index > 0 || !on_line {
            new_line(text, depth);
        }
        text.push_str(&scalar::key(key));
        text.push(':');
        match value {
            Node::Mapping(entries) if !entries.is_empty() => mapping(text, entries, step(depth), false),
            Node::List(items) if !items.is_empty() => list(text, items, step(depth), false),
            other => {
                text.push(' ');
                text.push_str(&other.inline(step(depth)));
            }
        }
    }
}

/// Writes items. What is within an item begins two further, after its dash.
fn list(text: &mut String, items: &[Node], depth: usize, on_line: bool) {
    let within = depth + 2;
    for (index, item) in items.iter().enumerate() {
        if index > 0 || !on_line {
            new_line(text, depth);
        }
        text.push_str("- ");
        match item {
            Node::Mapping(entries) if !entries.is_empty() => mapping(text, entries, within, true),
            Node::List(items) if !items.is_empty() => list(text, items, within, true),
            other => text.push_str(&other.inline(within)),
        }
    }
}

fn new_line(text: &mut String, depth: usize) {
    text.push('\n');
    (0..depth).for_each(|_| text.push(' '));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lists_stand_at_the_next_step_and_their_items_two_further() {
        let document = json!({"a": {"b": [{"c": ["d"], "e": {"f": [[1, [2]], []]}}], "g": {}, "h": null}});
        let expected = "a:
    b:
        - c:
            - d
          e:
            f:
                - - 1
                  - - 2
                - []
    g: {}
    h: null
";
        similar_asserts::assert_eq!(render(&document).unwrap(), expected);
    }

    #[test]
    fn several_lines_stand_below_one_another() {
        let document = json!({"a": ["x\ny\n", "x\n\ny"], "b": {"c": "x\n y\n\n", "d": " x\ny"}});
        let expected = r#"a:
    - |
      x
      y
    - |-
      x

      y
b:
    c: |+
        x
         y

    d: " x\ny"
"#;
        similar_asserts::assert_eq!(render(&document).unwrap(), expected);
    }
}
