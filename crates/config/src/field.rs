//! Paths to fields, and what is wrong with a field.

use std::{borrow::Cow, fmt};

/// The path to a field of an object, as the API server writes it in its own errors: `tools[0].name`,
/// `toolsOverride[fetch]`. It starts below `spec`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FieldPath(Vec<Segment>);

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Segment {
    /// A field of an object.
    Field(Cow<'static, str>),
    /// An item of a list.
    Index(usize),
    /// A value of a map whose keys users choose.
    Key(String),
}

impl FieldPath {
    /// The steps, outermost first.
    pub fn segments(&self) -> &[Segment] {
        &self.0
    }

    /// Whether this is the path of the spec itself.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether this is the path of `parent`, or of something in it.
    pub fn is_within(&self, parent: impl Into<Self>) -> bool {
        self.0.starts_with(&parent.into().0)
    }

    /// The path of an item of this list.
    #[must_use]
    pub fn index(mut self, index: usize) -> Self {
        self.0.push(Segment::Index(index));
        self
    }

    /// The path of the value under a key of this map.
    #[must_use]
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.0.push(Segment::Key(key.into()));
        self
    }

    /// The path of what `below` leads to from here.
    #[must_use]
    pub fn join(mut self, below: impl Into<Self>) -> Self {
        self.0.extend(below.into().0);
        self
    }
}

/// Fields, separated by dots. Items and keys are added by [`FieldPath::index`] and [`FieldPath::key`].
impl From<&'static str> for FieldPath {
    fn from(path: &'static str) -> Self {
        let fields = path.split('.').filter(|field| !field.is_empty());
        Self(fields.map(|field| Segment::Field(Cow::Borrowed(field))).collect())
    }
}

/// The same, with items and keys in brackets: `tools[0].name`, `backends[files]`.
impl From<String> for FieldPath {
    fn from(path: String) -> Self {
        let mut segments = Vec::new();
        let mut rest = path.as_str();
        while !rest.is_empty() {
            let closed = rest.strip_prefix('[').and_then(|inner| inner.split_once(']'));
            rest = match closed {
                Some((key, after)) => {
                    segments.push(match key.parse() {
                        Ok(index) => Segment::Index(index),
                        Err(_) => Segment::Key(key.into()),
                    });
                    after.strip_prefix('.').unwrap_or(after)
                }
                None => {
                    let end =
                        rest.char_indices().skip(1).find(|(_, c)| matches!(c, '.' | '[')).map(|(at, _)| at);
                    let (field, after) = rest.split_at(end.unwrap_or(rest.len()));
                    segments.push(Segment::Field(Cow::Owned(field.into())));
                    after.strip_prefix('.').unwrap_or(after)
                }
            };
        }
        Self(segments)
    }
}

/// The place in a document at which a parser stopped.
impl From<&serde_path_to_error::Path> for FieldPath {
    fn from(path: &serde_path_to_error::Path) -> Self {
        use serde_path_to_error::Segment as Step;
        let segments = path.iter().filter_map(|step| match step {
            Step::Seq { index } => Some(Segment::Index(*index)),
            Step::Map { key } => Some(Segment::Field(Cow::Owned(key.clone()))),
            Step::Enum { .. } | Step::Unknown => None,
        });
        Self(segments.collect())
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, segment) in self.0.iter().enumerate() {
            match segment {
                Segment::Field(name) if position == 0 => f.write_str(name)?,
                Segment::Field(name) => write!(f, ".{name}")?,
                Segment::Index(index) => write!(f, "[{index}]")?,
                Segment::Key(key) => write!(f, "[{key}]")?,
            }
        }
        Ok(())
    }
}

/// A field with an invalid value. The text names the field, what is wrong and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    /// The field.
    pub field: FieldPath,
    /// What is wrong with it and what to do, without the field's name.
    pub message: String,
}

impl FieldError {
    /// An error of this field.
    pub fn new(field: impl Into<FieldPath>, message: impl Into<String>) -> Self {
        Self { field: field.into(), message: message.into() }
    }

    /// The same error, in a field that is part of `parent`.
    #[must_use]
    pub fn within(self, parent: impl Into<FieldPath>) -> Self {
        Self { field: parent.into().join(self.field), ..self }
    }
}

impl From<FieldPath> for String {
    fn from(path: FieldPath) -> Self {
        path.to_string()
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.field.is_root() {
            return f.write_str(&self.message);
        }
        write!(f, "{}: {}", self.field, self.message)
    }
}

impl std::error::Error for FieldError {}

/// How many errors a sentence lists.
const LISTED: usize = 10;

/// Several errors in one sentence: the first of them, and how many more there are.
pub fn joined(errors: &[FieldError]) -> String {
    let mut parts: Vec<String> = errors.iter().take(LISTED).map(ToString::to_string).collect();
    if let more @ 1.. = errors.len().saturating_sub(LISTED) {
        parts.push(format!("and {more} more"));
    }
    parts.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_written_as_kubernetes_writes_it() {
        let path =
            FieldPath::from("config.aggregation.tools").index(2).join("overrides").key("a b").join("name");
        assert_eq!(path.to_string(), "config.aggregation.tools[2].overrides[a b].name");
        assert_eq!(FieldPath::default().to_string(), "");
        assert_eq!(FieldPath::from(path.to_string()), path);
    }

    #[test]
    fn an_error_names_its_field_and_the_fields_around_it() {
        let error = FieldError::new("url", "must be a URL").within(FieldPath::from("validating").index(0));
        assert_eq!(error.to_string(), "validating[0].url: must be a URL");
        assert_eq!(FieldError::new("", "is empty").to_string(), "is empty");
        assert_eq!(
            joined(&[error.clone(), FieldError::new("x", "y")]),
            "validating[0].url: must be a URL; x: y"
        );
        let many = joined(&vec![FieldError::new("x", "y"); LISTED + 590]);
        assert!(many.ends_with("; x: y; and 590 more") && many.len() < 100, "{many}");
    }
}
