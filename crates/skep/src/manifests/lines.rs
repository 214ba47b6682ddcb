//! The lines of fields in a file.

use std::{collections::BTreeMap, fmt, path::Path, sync::OnceLock};

use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_saphyr::Spanned;
use skep_config::{
    FieldError,
    field::{FieldPath, Segment},
};

use super::yaml::documents;

/// The lines of all fields of a text. They are computed once, when the first is needed.
#[derive(Default)]
pub(crate) struct Lines {
    text: String,
    documents: OnceLock<Vec<Spanned<Tree>>>,
}

impl Lines {
    pub(crate) fn new(text: &str) -> Self {
        Self { text: text.into(), documents: OnceLock::new() }
    }

    /// The line of a field in the document with this number, or of the innermost field around it that exists.
    pub(crate) fn line(&self, document: usize, field: &FieldPath) -> Option<u64> {
        let documents = self.documents.get_or_init(|| documents(&self.text).unwrap_or_default());
        line(documents.get(document)?, field)
    }
}

/// A place in a file, as `file:line: `.
pub(super) fn place(file: &str, line: Option<u64>) -> String {
    match line {
        Some(line) => format!("{file}:{line}: "),
        None => format!("{file}: "),
    }
}

/// Errors of a file with one document, each with its place.
pub(crate) fn located(file: &Path, text: &str, errors: &[FieldError]) -> Vec<String> {
    let (file, lines) = (file.display().to_string(), Lines::new(text));
    let located = |error: &FieldError| format!("{}{error}", place(&file, lines.line(0, &error.field)));
    errors.iter().map(located).collect()
}

fn line(document: &Spanned<Tree>, field: &FieldPath) -> Option<u64> {
    let mut tree = &document.value;
    let mut line = tree.0.values().map(|(line, _)| *line).min().unwrap_or(document.referenced.line());
    for segment in field.segments() {
        let key = match segment {
            Segment::Field(name) => name.to_string(),
            Segment::Index(index) => index.to_string(),
            Segment::Key(key) => key.clone(),
        };
        match tree.0.get(&key) {
            Some((inner, below)) => (line, tree) = (*inner, below),
            None => break,
        }
    }
    Some(line)
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
    fn a_field_has_the_line_of_the_innermost_field_that_exists() {
        let lines = Lines::new(TEXT);
        let annotation = FieldPath::from("metadata.annotations").key("skep.dev/local-command");
        for (document, field, expected) in [
            (0, FieldPath::default(), 2),
            (1, FieldPath::default(), 4),
            (1, "nothing.at.all".into(), 4),
            (1, annotation, 7),
            (1, FieldPath::from("spec.list").index(1).join("more.d"), 12),
            (1, FieldPath::from("spec.list").index(1).join("other"), 11),
            (1, "spec.image".into(), 8),
            (1, "spec.limits".into(), 13),
            (1, "spec.toolConfigRef".into(), 14),
        ] {
            assert_eq!(lines.line(document, &field), Some(expected), "{field}");
        }
        assert_eq!(lines.line(2, &FieldPath::default()), None);
    }
}
