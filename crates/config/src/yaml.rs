//! The text of YAML files.

use serde::{Serialize, de::DeserializeOwned};
use serde_saphyr::{from_str_with_options, options, ser_options, to_string_with_options};

/// Why a file cannot be written.
pub type Error = serde_saphyr::SerializeError;

/// Parses a file.
pub fn parse<T: DeserializeOwned>(text: &str) -> Result<T, serde_saphyr::Error> {
    // With a snippet of the text, the message would have several lines.
    from_str_with_options(text, options! { with_snippet: false })
}

/// The text of a file. All strings are quoted: readers of YAML 1.1, such as Go's, parse more words and numbers than
/// those of YAML 1.2.
pub fn render<T: Serialize>(document: &T) -> Result<String, Error> {
    to_string_with_options(document, ser_options! { quote_all: true })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn every_string_is_quoted_and_every_value_is_read_back() {
        let document = json!({
            "strings": ["", "a", "yes", "0x1F", "1_000", "2025-11-05", "10:30", "~", "- a", "a: b", "#c", " x ", "it's",
                "x\ny\n", "\t\"\\\u{1}\u{85}\u{1f41d}", "{{.params.q}}"],
            "numbers": [0, -5, 1_000_000, 0.5, 1e300, 9_007_199_254_740_993_i64],
            "others": [true, null, [], {}],
            "keys": {"": 1, "yes": 2, "1": 3, "a: b": 4, "- x": 5, "#c": 6, "~": 7, "x\ny": 8},
        });
        let text = render(&document).unwrap();
        assert_eq!(serde_saphyr::from_str::<Value>(&text).unwrap(), document, "{text}");
        assert!(text.contains("'2025-11-05'") && text.contains("'yes'"), "{text}");
    }
}
