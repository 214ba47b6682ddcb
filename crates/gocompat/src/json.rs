//! JSON in the format of Go's `encoding/json`, and JSON that keeps its original text.
//!
//! Needed for as long as pods that ToolHive's operator started are taken over: they carry hashes of such texts, and an
//! argument with one. A file needs only the value; [`render`] lays it out with the original text of its [`Json`] parts.

use std::fmt::Write;

use serde::{Deserialize, Deserializer, Serialize, de::DeserializeOwned, de::Error};
use serde_json::value::RawValue;

use crate::fold;

/// A JSON value that keeps the order of its keys and the digits of its numbers, and loses its white space.
///
/// For parts of a file that are passed through to other programs.
#[derive(Clone, Debug, Serialize)]
#[serde(transparent)]
pub struct Json(Box<RawValue>);

impl Json {
    /// The JSON of a value.
    pub fn new<T: Serialize + ?Sized>(value: &T) -> serde_json::Result<Self> {
        let text = serde_json::to_string(value)?;
        RawValue::from_string(formatted(&text, None)).map(Self)
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        self.0.get()
    }

    /// The text, deserialised, with keys in any case.
    pub fn read<T: DeserializeOwned>(&self) -> serde_json::Result<T> {
        fold::from_str(self.as_str())
    }
}

impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Json {}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let original = Box::<RawValue>::deserialize(deserializer)?;
        let compact = RawValue::from_string(formatted(original.get(), None));
        compact.map(Self).map_err(D::Error::custom)
    }
}

/// The text of a file, as Go's encoder writes it with an indent of two spaces.
///
/// Numbers are written by serde_json, which equals Go for integers: files have no others.
pub fn render<T: Serialize>(document: &T) -> serde_json::Result<String> {
    serde_json::to_string(document).map(|compact| formatted(&compact, Some("  ")))
}

/// Valid JSON with other white space, and with the characters escaped that are special in HTML and JavaScript.
fn formatted(json: &str, indent: Option<&str>) -> String {
    let mut text = String::with_capacity(json.len() * 2);
    let break_line = |text: &mut String, depth: usize| {
        if let Some(indent) = indent {
            text.push('\n');
            (0..depth).for_each(|_| text.push_str(indent));
        }
    };
    let mut depth = 0_usize;
    // An object or list was just opened: if it is empty, it stays on one line.
    let mut opened = false;
    let mut chars = json.chars();
    while let Some(c) = chars.next() {
        if c.is_ascii_whitespace() {
            continue;
        }
        let closes = matches!(c, '}' | ']');
        if opened && !closes {
            depth += 1;
            break_line(&mut text, depth);
        }
        if closes && !opened {
            depth = depth.saturating_sub(1);
            break_line(&mut text, depth);
        }
        opened = matches!(c, '{' | '[');
        text.push(c);
        match c {
            '"' => copy_string(&mut chars, &mut text),
            ',' => break_line(&mut text, depth),
            ':' if indent.is_some() => text.push(' '),
            _ => {}
        }
    }
    text
}

/// Copies the rest of a string, with its closing quote.
fn copy_string(chars: &mut std::str::Chars<'_>, text: &mut String) {
    while let Some(c) = chars.next() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                // Writing to a String cannot fail.
                let _ = write!(text, "\\u{:04x}", u32::from(c));
            }
            '\\' => {
                text.push(c);
                text.extend(chars.next());
            }
            _ => text.push(c),
        }
        if c == '"' {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lists_and_objects_are_indented_unless_they_are_empty() {
        let rendered = render(&json!({"a": [1, {"b": []}], "c": {}, "d": null})).unwrap();
        let expected = r#"{
  "a": [
    1,
    {
      "b": []
    }
  ],
  "c": {},
  "d": null
}"#;
        similar_asserts::assert_eq!(rendered, expected);
    }

    #[test]
    fn characters_that_are_special_in_html_and_javascript_are_escaped() {
        let rendered =
            render(&json!(["<a href=\"x\">&</a>", "\u{2028}\u{2029}", "\u{7f}é\u{1}\u{8}"])).unwrap();
        let expected = r#"[
  "\u003ca href=\"x\"\u003e\u0026\u003c/a\u003e",
  "\u2028\u2029",
  "CONTROLé\u0001\b"
]"#;
        similar_asserts::assert_eq!(rendered, expected.replace("CONTROL", "\u{7f}"));
    }

    #[test]
    fn brackets_quotes_and_backslashes_in_strings_are_unchanged() {
        let rendered = render(&json!(["{[\"\\", ": ,"])).unwrap();
        assert_eq!(rendered, "[\n  \"{[\\\"\\\\\",\n  \": ,\"\n]");
    }

    #[test]
    fn json_keeps_order_and_digits_and_loses_white_space() {
        let json: Json = serde_json::from_str("{ \"b\" : 1.50,\n \"a\" : [ ] , \"c\": \" <\" }").unwrap();
        assert_eq!(json.as_str(), "{\"b\":1.50,\"a\":[],\"c\":\" \\u003c\"}");
        assert_eq!(json, Json::new(&json).unwrap());
        assert_eq!(json.read::<serde_json::Value>().unwrap(), json!({"a": [], "b": 1.5, "c": " <"}));
    }
}
