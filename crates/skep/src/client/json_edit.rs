//! Changes one member of a JSON text, which may have comments and trailing commas. Everything else stays byte for byte.

use anyhow::{Context, bail, ensure};
use jsonc_parser::{
    ParseOptions,
    cst::{CstInputValue, CstRootNode},
};
use serde_json::Value;

/// JSON with comments and trailing commas, as editors read their configuration.
const SYNTAX: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

/// The value of a text. One without a value is an empty object.
pub(super) fn value_of(text: &str) -> anyhow::Result<Value> {
    let root = CstRootNode::parse(text, &SYNTAX)?;
    let Some(value) = root.value() else { return Ok(Value::Object(serde_json::Map::new())) };
    value.to_serde_value().context("it is not JSON")
}

/// Sets a member of the object `section`, or removes it if there is no value. A missing section is created.
pub(super) fn with_member(
    text: &str,
    section: &str,
    name: &str,
    value: Option<&Value>,
) -> anyhow::Result<String> {
    let text = if text.trim().is_empty() { "{}\n" } else { text };
    let mut expected = value_of(text)?;
    let edited = edited(text, section, name, value)?;
    match value {
        Some(value) => expected[section][name] = value.clone(),
        None => {
            let members = expected.get_mut(section).and_then(Value::as_object_mut);
            members.and_then(|members| members.remove(name));
        }
    }
    ensure!(value_of(&edited).is_ok_and(|edited| edited == expected), "it cannot be edited");
    Ok(edited)
}

fn edited(text: &str, section: &str, name: &str, value: Option<&Value>) -> anyhow::Result<String> {
    let root = CstRootNode::parse(text, &SYNTAX)?;
    let object = root.object_value_or_create().context("it is not an object")?;
    if value.is_none() && object.get(section).is_none() {
        return Ok(text.to_owned());
    }
    let Some(members) = object.object_value_or_create(section) else { bail!("{section} is not an object") };
    match (members.get(name), value) {
        (Some(member), Some(value)) => member.set_value(input(value)),
        (Some(member), None) => member.remove(),
        (None, Some(value)) => drop(members.append(name, input(value))),
        (None, None) => {}
    }
    Ok(root.to_string())
}

fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(value) => CstInputValue::Bool(*value),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(items) => CstInputValue::Array(items.iter().map(input).collect()),
        Value::Object(members) => {
            CstInputValue::Object(members.iter().map(|(name, value)| (name.clone(), input(value))).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const TEXT: &str = r#"{
    "theme": "da\"rk}",   "size": 1.50e3,
    "mcpServers": {
        "own": {"command": "x", "args": ["a", {"b": [1, null]}]}
    },
    "last": [ true ]
}
"#;

    fn set(text: &str, name: &str, value: &Value) -> String {
        with_member(text, "mcpServers", name, Some(value)).unwrap()
    }

    fn remove(text: &str, name: &str) -> String {
        with_member(text, "mcpServers", name, None).unwrap()
    }

    #[test]
    fn a_member_is_added_replaced_and_removed_and_everything_else_stays() {
        let added = set(TEXT, "demo", &json!({"url": "u"}));
        let expected = TEXT
            .replace("null]}]}\n", "null]}]},\n        \"demo\": {\n            \"url\": \"u\"\n        }\n");
        assert_eq!(added, expected);
        let changed = set(&added, "demo", &json!({"url": "v"}));
        assert_eq!(changed, expected.replace("\"u\"", "\"v\""));
        assert_eq!(remove(&changed, "demo"), TEXT);
        assert_eq!(remove(TEXT, "other"), TEXT);
        let without = remove(&added, "own");
        assert_eq!(
            without,
            added.replace(
                "\"own\": {\"command\": \"x\", \"args\": [\"a\", {\"b\": [1, null]}]},\n        ",
                ""
            )
        );
    }

    #[test]
    fn a_missing_section_is_added() {
        let value = json!({"url": "u"});
        let expected = "{\n  \"mcpServers\": {\n    \"demo\": {\n      \"url\": \"u\"\n    }\n  }\n}\n";
        for empty in ["", " \n", "{}\n", "{\n}\n"] {
            assert_eq!(set(empty, "demo", &value), expected);
        }
        assert_eq!(remove(expected, "demo"), "{\n  \"mcpServers\": {}\n}\n");
        let line = r#"{"a": 1, "mcpServers": {"x": 2}}"#;
        assert_eq!(remove(&set(line, "x", &value), "x"), r#"{"a": 1, "mcpServers": {}}"#);
    }

    /// A file as people write it for VS Code.
    const COMMENTED: &str = r#"// Servers of the team
{
  /* ours, "not": {"yours"} */
  "mcpServers": {
    // the old one
    "own": { "command": "x", "args": ["// no comment"], }, // until May
  },
  "inputs": [1, 2,], // last
}
"#;

    #[test]
    fn comments_and_trailing_commas_stay() {
        let added = set(COMMENTED, "demo", &json!({"url": "u"}));
        let lines: Vec<&str> = COMMENTED.lines().collect();
        assert!(lines.iter().all(|line| added.contains(line.trim())), "{added}");
        assert_eq!(value_of(&added).unwrap()["mcpServers"]["demo"], json!({"url": "u"}));
        assert_eq!(set(&added, "demo", &json!({"url": "u"})), added);
        let changed = set(&added, "demo", &json!({"url": "v"}));
        assert_eq!(changed, added.replace("\"u\"", "\"v\""));
        assert_eq!(remove(&changed, "demo"), COMMENTED);
        let without = remove(COMMENTED, "own");
        assert!(without.contains("\"inputs\": [1, 2,], // last") && !without.contains("\"x\""), "{without}");
        let commented = set("// nothing yet\n", "demo", &json!(1));
        assert!(commented.starts_with("// nothing yet\n"), "{commented}");
        assert_eq!(value_of(&commented).unwrap(), json!({"mcpServers": {"demo": 1}}));
    }

    #[test]
    fn line_ends_of_windows_stay() {
        let text = COMMENTED.replace('\n', "\r\n");
        let added = set(&text, "demo", &json!({"url": "u", "headers": {"a": ["b"]}}));
        assert_eq!(added.matches('\n').count(), added.matches("\r\n").count(), "{added:?}");
        assert_eq!(remove(&added, "demo"), text);
    }

    #[test]
    fn members_of_other_objects_and_odd_names_are_not_taken_for_it() {
        let text = "{\"other\": {\"mcpServers\": {\"demo\": 1}, \"demo\": 2}}\n";
        let added = set(text, "demo", &json!({}));
        let expected = json!({"other": {"mcpServers": {"demo": 1}, "demo": 2}, "mcpServers": {"demo": {}}});
        assert_eq!(value_of(&added).unwrap(), expected);
        let odd = "a\"b\\c\n{}//";
        let added = set("{}", odd, &json!({odd: odd}));
        assert_eq!(value_of(&added).unwrap(), json!({"mcpServers": {odd: {odd: odd}}}));
        assert_eq!(set("{\"mcp\\u0053ervers\": {}}", "x", &json!(1)).matches("ervers").count(), 1);
    }

    #[test]
    fn a_text_that_is_something_else_is_not_changed() {
        for wrong in [
            "[]",
            "1",
            "{\"mcpServers\": 1}",
            "{\"mcpServers\": null}",
            "{a: 1}",
            "{'a': 1}",
            "{\"a\": 1 \"b\": 2}",
            "{\"a\": .5}",
            "{\"a\"",
            "{} {}",
            "/* ",
            &"[".repeat(100_000),
        ] {
            assert!(with_member(wrong, "mcpServers", "demo", Some(&json!({}))).is_err(), "{wrong:.30}");
        }
        let twice = "{\"mcpServers\": {}, \"mcpServers\": {\"own\": 1}}";
        assert!(with_member(twice, "mcpServers", "demo", Some(&json!({}))).is_err());
    }
}
