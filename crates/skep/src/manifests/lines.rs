//! In which line of a file a field is.

use std::{collections::BTreeMap, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_saphyr::Spanned;

/// The line of the field that a message begins with, as in `spec.image: …`, in the document with this number. If there is no
/// such field, it is the line of what it would be in.
pub(super) fn line(text: &str, document: usize, message: &str) -> Option<u64> {
    let documents: Vec<Spanned<Tree>> = serde_saphyr::from_multiple(text).ok()?;
    let document = documents.get(document)?;
    let mut tree = &document.value;
    let mut line = tree.0.values().map(|(line, _)| *line).min().unwrap_or(document.referenced.line());
    let mut steps = steps(message);
    // The operator's words leave out where every field of theirs is.
    if let (Some(first), Some((_, spec))) = (steps.first(), tree.0.get("spec"))
        && !tree.0.contains_key(first)
        && spec.0.contains_key(first)
    {
        steps.insert(0, "spec".into());
    }
    if let Some(field) = tree.0.get("spec").and_then(|(_, spec)| reference(message, spec)) {
        steps = vec!["spec".into(), field];
    }
    for step in steps {
        match tree.0.get(&step) {
            Some((found, below)) => (line, tree) = (*found, below),
            None => break,
        }
    }
    Some(line)
}

/// The field that refers to what a message says is not there: `there is no MCPToolConfig …` is about `toolConfigRef`.
fn reference(message: &str, spec: &Tree) -> Option<String> {
    let kind = message.strip_prefix("there is no MCP")?.split(' ').next()?;
    spec.0.keys().find(|field| field.eq_ignore_ascii_case(&format!("{kind}Ref"))).cloned()
}

/// The fields in `a.b[0].c: what is wrong`, or in `a.b is missing`. One in brackets may have dots.
fn steps(message: &str) -> Vec<String> {
    let (mut steps, mut step, mut in_brackets) = (Vec::new(), String::new(), false);
    for c in message.chars() {
        match c {
            ']' if in_brackets => in_brackets = false,
            _ if in_brackets => step.push(c),
            '.' | '[' => {
                steps.push(std::mem::take(&mut step));
                in_brackets = c == '[';
            }
            ':' | ' ' | ',' => break,
            _ => step.push(c),
        }
    }
    steps.push(step);
    steps.retain(|step| !step.is_empty());
    steps
}

/// The fields of a map, and the items of a list by their numbers, with their lines.
#[derive(Default)]
struct Tree(BTreeMap<String, (u64, Tree)>);

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Fields)
    }
}

struct Fields;

impl<'de> Visitor<'de> for Fields {
    type Value = Tree;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("anything")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Tree, A::Error> {
        let mut tree = Tree::default();
        while let Some((key, value)) = map.next_entry::<Spanned<String>, Tree>()? {
            tree.0.insert(key.value, (key.referenced.line(), value));
        }
        Ok(tree)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Tree, A::Error> {
        let mut tree = Tree::default();
        while let Some(item) = list.next_element::<Spanned<Tree>>()? {
            tree.0.insert(tree.0.len().to_string(), (item.referenced.line(), item.value));
        }
        Ok(tree)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Tree, D::Error> {
        Tree::deserialize(deserializer)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<Tree, D::Error> {
        IgnoredAny::deserialize(deserializer).map(|_| Tree::default())
    }

    fn visit_unit<E>(self) -> Result<Tree, E> {
        Ok(Tree::default())
    }

    fn visit_none<E>(self) -> Result<Tree, E> {
        Ok(Tree::default())
    }

    fn visit_bool<E>(self, _: bool) -> Result<Tree, E> {
        Ok(Tree::default())
    }

    fn visit_i64<E>(self, _: i64) -> Result<Tree, E> {
        Ok(Tree::default())
    }

    fn visit_u64<E>(self, _: u64) -> Result<Tree, E> {
        Ok(Tree::default())
    }

    fn visit_f64<E>(self, _: f64) -> Result<Tree, E> {
        Ok(Tree::default())
    }

    fn visit_str<E>(self, _: &str) -> Result<Tree, E> {
        Ok(Tree::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# a comment
kind: A
---
kind: B
metadata:
  annotations:
    skep.dev/local-command: x
spec:
  list:
    - name: a
    - name: b
      more: {c: 1, d: null}
  limits: 2
  toolConfigRef: {name: a}
";

    #[test]
    fn a_field_is_found_by_what_a_message_begins_with() {
        for (document, message, expected) in [
            (0, "", 2),
            (1, "", 4),
            (1, "nothing.at.all: it is gone", 4),
            (1, "kind is missing", 4),
            (1, "metadata.annotations[skep.dev/local-command]: a quote", 7),
            (1, "spec.list[1].more.d: it is null", 12),
            (1, "spec.list[1].other: it is missing", 11),
            (1, "spec.image is missing", 8),
            (1, "limits: of the operator", 13),
            (1, "there is no MCPToolConfig a in this namespace", 14),
        ] {
            assert_eq!(line(TEXT, document, message), Some(expected), "{message}");
        }
        assert_eq!(line(TEXT, 2, ""), None);
    }
}
