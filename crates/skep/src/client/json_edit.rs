//! Changing one member of a JSON text. Everything else stays byte for byte.

use std::ops::Range;

use anyhow::{Context, bail, ensure};
use serde::Serialize;
use serde_json::{Value, ser::PrettyFormatter};

/// Sets a member of the object `section`, which is created if it does not exist, or removes it if there is no value.
pub(super) fn with_member(
    text: &str,
    section: &str,
    name: &str,
    value: Option<&Value>,
) -> anyhow::Result<String> {
    let text = if text.trim().is_empty() { "{}\n" } else { text };
    let mut expected: Value = serde_json::from_str(text)
        .context("it is not plain JSON, maybe because of comments: edit it yourself, or remove them")?;
    ensure!(expected.is_object(), "it is not an object");
    let edited = edited(text, section, name, value)?;
    match value {
        Some(value) => expected[section][name] = value.clone(),
        None => {
            let members = expected.get_mut(section).and_then(Value::as_object_mut);
            members.and_then(|members| members.remove(name));
        }
    }
    ensure!(
        serde_json::from_str::<Value>(&edited).is_ok_and(|edited| edited == expected),
        "it cannot be edited"
    );
    Ok(edited)
}

fn edited(text: &str, section: &str, name: &str, value: Option<&Value>) -> anyhow::Result<String> {
    let start = text.find('{').unwrap_or_default();
    let root = Object::at(text, start);
    let unit = root.indent(text).filter(|indent| !indent.is_empty()).unwrap_or("  ");
    let Some(member) = root.member(section) else {
        let Some(value) = value else { return Ok(text.to_owned()) };
        return Ok(root.with(text, section, &serde_json::json!({name: value}), unit));
    };
    if text.as_bytes()[member.value.start] != b'{' {
        bail!("{section} is not an object");
    }
    let object = Object::at(text, member.value.start);
    Ok(match value {
        Some(value) => object.with(text, name, value, unit),
        None => object.without(text, name),
    })
}

/// A member of an object, by its position in the text.
struct Member {
    key: String,
    start: usize,
    value: Range<usize>,
}

/// An object, by its position in a valid text.
struct Object {
    open: usize,
    members: Vec<Member>,
    close: usize,
}

impl Object {
    fn at(text: &str, open: usize) -> Self {
        let bytes = text.as_bytes();
        let skip = |mut at: usize, also: u8| {
            while bytes[at].is_ascii_whitespace() || bytes[at] == also {
                at += 1;
            }
            at
        };
        let mut members = Vec::new();
        let mut at = skip(open + 1, b',');
        while bytes[at] != b'}' {
            let key = at..end_of_value(bytes, at);
            let start = skip(key.end, b':');
            let value = start..end_of_value(bytes, start);
            at = skip(value.end, b',');
            let name = serde_json::from_str(&text[key.clone()]).unwrap_or_default();
            members.push(Member { key: name, start: key.start, value });
        }
        Self { open, members, close: at }
    }

    fn member(&self, key: &str) -> Option<&Member> {
        self.members.iter().find(|member| member.key == key)
    }

    /// What is before the first member in its line, or nothing if it is in the line of the brace.
    fn indent<'a>(&self, text: &'a str) -> Option<&'a str> {
        let before = &text[self.open + 1..self.members.first()?.start];
        before.rsplit_once('\n').map(|(_, indent)| indent)
    }

    fn with(&self, text: &str, key: &str, value: &Value, unit: &str) -> String {
        if let Some(member) = self.member(key) {
            let indent = self.indent(text).unwrap_or_default();
            return replaced(text, member.value.clone(), &pretty(value, indent, unit));
        }
        let name = Value::from(key);
        match (self.members.last(), self.indent(text)) {
            (Some(last), Some(indent)) => {
                let member = format!(",\n{indent}{name}: {}", pretty(value, indent, unit));
                replaced(text, last.value.end..last.value.end, &member)
            }
            // All in one line.
            (Some(last), None) => {
                replaced(text, last.value.end..last.value.end, &format!(", {name}: {value}"))
            }
            (None, _) => {
                let line = text[..self.open].rsplit('\n').next().unwrap_or_default();
                let outer: String = line.chars().take_while(|c| c.is_whitespace()).collect();
                let indent = format!("{outer}{unit}");
                let member = format!("\n{indent}{name}: {}\n{outer}", pretty(value, &indent, unit));
                replaced(text, self.open + 1..self.close, &member)
            }
        }
    }

    fn without(&self, text: &str, key: &str) -> String {
        let Some(index) = self.members.iter().position(|member| member.key == key) else {
            return text.to_owned();
        };
        let range = match (index.checked_sub(1), self.members.get(index + 1)) {
            (_, Some(next)) => self.members[index].start..next.start,
            (Some(previous), None) => self.members[previous].value.end..self.members[index].value.end,
            (None, None) => self.open + 1..self.close,
        };
        replaced(text, range, "")
    }
}

fn replaced(text: &str, range: Range<usize>, with: &str) -> String {
    format!("{}{with}{}", &text[..range.start], &text[range.end..])
}

/// The value in several lines, the first of which has its indentation already.
fn pretty(value: &Value, indent: &str, unit: &str) -> String {
    let mut bytes = Vec::new();
    let formatter = PrettyFormatter::with_indent(unit.as_bytes());
    let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, formatter);
    match value.serialize(&mut serializer) {
        Ok(()) => String::from_utf8_lossy(&bytes).replace('\n', &format!("\n{indent}")),
        Err(_) => value.to_string(),
    }
}

/// Where a value ends that starts here.
fn end_of_value(bytes: &[u8], start: usize) -> usize {
    let mut depth = 0usize;
    let mut at = start;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => {
                at += 1;
                while bytes[at] != b'"' {
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
                at += 1;
            }
            b'{' | b'[' => {
                depth += 1;
                at += 1;
                continue;
            }
            b'}' | b']' => {
                depth -= 1;
                at += 1;
            }
            byte if depth > 0 && (byte.is_ascii_whitespace() || matches!(byte, b',' | b':')) => {
                at += 1;
                continue;
            }
            _ => {
                while bytes.get(at).is_some_and(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(byte))
                {
                    at += 1;
                }
            }
        }
        if depth == 0 {
            break;
        }
    }
    at
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
        for empty in ["", "{}\n", "{ \n}\n"] {
            assert_eq!(set(empty, "demo", &value), expected);
        }
        assert_eq!(remove(expected, "demo"), "{\n  \"mcpServers\": {}\n}\n");
        let line = r#"{"a": 1, "mcpServers": {"x": 2}}"#;
        assert_eq!(set(line, "demo", &value), r#"{"a": 1, "mcpServers": {"x": 2, "demo": {"url":"u"}}}"#);
        assert_eq!(set("{\"mcpServers\": {}}", "demo", &json!(1)), "{\"mcpServers\": {\n  \"demo\": 1\n}}");
    }

    #[test]
    fn a_text_that_is_not_plain_json_is_not_changed() {
        for wrong in ["{ // comment\n}", "[]", "{\"mcpServers\": 1}", "{\"a\": 1,}"] {
            assert!(with_member(wrong, "mcpServers", "demo", Some(&json!({}))).is_err(), "{wrong}");
        }
    }
}
