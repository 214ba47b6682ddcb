//! How two states of an object differ, field by field.

use std::{collections::BTreeSet, fmt};

use serde_json::{Value, json};

/// A field that differs.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// Where it is, as `spec.template.spec.containers[mcp].image`.
    pub path: String,
    /// The old value. `None` if it was absent.
    pub before: Option<Value>,
    /// The new value. `None` if it would be absent.
    pub after: Option<Value>,
}

/// The suffix of the path of a list of which only the order differs.
const ORDER: &str = " (order)";

impl Change {
    /// Whether it is only the order of a list.
    pub(crate) fn is_order(&self) -> bool {
        self.path.ends_with(ORDER)
    }
}

/// The fields that identify the items of a list, if each has a unique value.
const KEYS: [&str; 3] = ["name", "type", "mountPath"];

/// How the states differ, in the order of their fields.
pub(crate) fn changes(before: &Value, after: &Value) -> Vec<Change> {
    let mut changes = Vec::new();
    compare("", Some(before), Some(after), &mut changes);
    changes
}

fn compare(path: &str, before: Option<&Value>, after: Option<&Value>, changes: &mut Vec<Change>) {
    match (before, after) {
        _ if before == after => {}
        (Some(Value::Object(one)), Some(Value::Object(other))) => {
            let names: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
            for name in names {
                compare(&member(path, name), one.get(name), other.get(name), changes);
            }
        }
        (Some(Value::Array(one)), Some(Value::Array(other))) => {
            if let Some(key) =
                KEYS.into_iter().find(|key| names(one, key).is_some() && names(other, key).is_some())
            {
                compare_items(path, key, one, other, changes);
            } else {
                compare_positions(path, one, other, changes);
            }
        }
        _ => changes.push(Change { path: path.into(), before: before.cloned(), after: after.cloned() }),
    }
}

/// Compares items by position, without the common prefix and suffix.
fn compare_positions(path: &str, one: &[Value], other: &[Value], changes: &mut Vec<Change>) {
    let start = one.iter().zip(other).take_while(|(a, b)| a == b).count();
    let (one, other) = (&one[start..], &other[start..]);
    let end = one.iter().rev().zip(other.iter().rev()).take_while(|(a, b)| a == b).count();
    let (one, other) = (&one[..one.len() - end], &other[..other.len() - end]);
    for index in 0..one.len().max(other.len()) {
        compare(&format!("{path}[{}]", start + index), one.get(index), other.get(index), changes);
    }
}

/// Compares items by name: an item inserted at the front does not make all others differ. Their order counts as well.
fn compare_items(path: &str, key: &str, one: &[Value], other: &[Value], changes: &mut Vec<Change>) {
    let named = |items: &[Value]| names(items, key).unwrap_or_default();
    let (before, after) = (named(one), named(other));
    let kept = |names: &[String], among: &[String]| -> Vec<String> {
        names.iter().filter(|name| among.contains(name)).cloned().collect()
    };
    if kept(&before, &after) != kept(&after, &before) {
        changes.push(Change {
            path: format!("{path}{ORDER}"),
            before: Some(json!(before)),
            after: Some(json!(after)),
        });
    }
    let added = after.iter().filter(|name| !before.contains(name));
    for name in before.iter().chain(added) {
        let item = |items: &[Value]| items.iter().find(|item| item[key] == name.as_str()).cloned();
        compare(&format!("{path}[{name}]"), item(one).as_ref(), item(other).as_ref(), changes);
    }
}

/// The names of all items, if they are unique.
fn names(items: &[Value], key: &str) -> Option<Vec<String>> {
    let names: Option<Vec<String>> =
        items.iter().map(|item| Some(item.get(key)?.as_str()?.to_owned())).collect();
    names.filter(|names| names.iter().collect::<BTreeSet<_>>().len() == names.len())
}

fn member(path: &str, name: &str) -> String {
    match path {
        "" => name.into(),
        _ if name.contains(['.', '/']) => format!("{path}[{name}]"),
        _ => format!("{path}.{name}"),
    }
}

/// Replaces a Secret's values by placeholders: they show which values differ, not the values.
pub(crate) fn hide_secrets(before: &mut Value, after: &mut Value) {
    for part in ["data", "stringData"] {
        let (mut none, mut none_either) = (json!({}), json!({}));
        let one = before.get_mut(part).unwrap_or(&mut none);
        let other = after.get_mut(part).unwrap_or(&mut none_either);
        let names: BTreeSet<String> = [&*one, &*other]
            .into_iter()
            .filter_map(Value::as_object)
            .flat_map(|map| map.keys().cloned())
            .collect();
        for name in names {
            let same = one.get(&name) == other.get(&name);
            if let Some(value) = one.get_mut(&name) {
                *value = json!("(a secret)");
            }
            if let Some(value) = other.get_mut(&name) {
                *value = json!(if same { "(a secret)" } else { "(another secret)" });
            }
        }
    }
    for object in [before, after] {
        // kubectl writes whole objects there.
        if let Some(Value::Object(annotations)) = object.pointer_mut("/metadata/annotations") {
            annotations.remove("kubectl.kubernetes.io/last-applied-configuration");
        }
    }
}

/// How much of a value is shown.
const SHOWN: usize = 120;

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.before, &self.after) {
            (Some(Value::String(one)), Some(Value::String(other)))
                if one.contains('\n') && other.contains('\n') =>
            {
                write!(f, "{}", self.path)?;
                differing_lines(f, one, other)
            }
            (Some(one), Some(other)) => write!(f, "{}: {} -> {}", self.path, Shown(one), Shown(other)),
            (None, Some(other)) => write!(f, "{}: + {}", self.path, Shown(other)),
            (Some(one), None) => write!(f, "{}: - {}", self.path, Shown(one)),
            (None, None) => write!(f, "{}", self.path),
        }
    }
}

/// The first lines that differ.
fn differing_lines(f: &mut fmt::Formatter<'_>, one: &str, other: &str) -> fmt::Result {
    let (one, other): (Vec<_>, Vec<_>) = (one.lines().collect(), other.lines().collect());
    let start = one.iter().zip(&other).take_while(|(a, b)| a == b).count();
    let end = one[start..].iter().rev().zip(other[start..].iter().rev()).take_while(|(a, b)| a == b).count();
    let shown = |lines: &[&str]| Value::String(lines[start..lines.len() - end].join(" ⏎ ").trim().into());
    write!(f, ", from line {}: {} -> {}", start + 1, Shown(&shown(&one)), Shown(&shown(&other)))
}

struct Shown<'a>(&'a Value);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.0.to_string();
        match text.char_indices().nth(SHOWN) {
            Some((end, _)) => write!(f, "{}…", &text[..end]),
            None => f.write_str(&text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(before: Value, after: Value) -> Vec<String> {
        changes(&before, &after).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn items_are_compared_by_name_and_their_order_counts() {
        let before =
            json!({"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}], "args": ["x"]});
        let after = json!({
            "env": [{"name": "C", "value": "3"}, {"name": "A", "value": "9"}, {"name": "B", "value": "2"}],
            "args": ["x", "y"],
        });
        let expected =
            [r#"args[1]: + "y""#, r#"env[A].value: "1" -> "9""#, r#"env[C]: + {"name":"C","value":"3"}"#];
        assert_eq!(described(before.clone(), after), expected);
        let turned = json!({"env": [before["env"][1], before["env"][0]], "args": ["x"]});
        assert_eq!(described(before, turned), [r#"env (order): ["A","B"] -> ["B","A"]"#]);
    }

    #[test]
    fn differing_lines_of_long_strings_are_shown() {
        let before = json!({"data": {"config.yaml": "a: 1\nb: 2\nc: 3\n"}});
        let after = json!({"data": {"config.yaml": "a: 1\nb: 4\nd: 5\nc: 3\n"}, "new": true});
        let expected = [r#"data[config.yaml], from line 2: "b: 2" -> "b: 4 ⏎ d: 5""#, "new: + true"];
        assert_eq!(described(before, after), expected);
    }

    #[test]
    fn only_the_keys_of_secrets_are_shown() {
        let mut before = json!({
            "metadata": {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": "s3cr3t"}},
            "data": {"same": "s3cr3t", "other": "s3cr3t", "removed": "s3cr3t"},
        });
        let mut after = json!({"metadata": {}, "data": {"same": "s3cr3t", "other": "0ther"}, "stringData": {"x": "s3cr3t"}});
        hide_secrets(&mut before, &mut after);
        let text = described(before, after);
        assert_eq!(
            text,
            [
                r#"data.other: "(a secret)" -> "(another secret)""#,
                r#"data.removed: - "(a secret)""#,
                "metadata.annotations: - {}",
                r#"stringData: + {"x":"(another secret)"}"#,
            ]
        );
    }
}
