//! Parsing of documents that no schema has checked: a file, or a part of an object that is stored as it was written.

use serde::de::DeserializeOwned;
use serde_ignored::Path;
use serde_json::Value;
use skep_config::{FieldError, FieldPath};

/// How many values of a wrong type are reported.
const MOST_ERRORS: usize = 50;

/// The document as a `T`, in which every key must be known.
pub fn parse<T: DeserializeOwned>(document: Value) -> Result<T, Vec<FieldError>> {
    match parse_lenient(document) {
        (Some(parsed), errors) if errors.is_empty() => Ok(parsed),
        (_, errors) => Err(errors),
    }
}

/// The document as a `T` without what is wrong with it, and all that is: unknown keys, and values of a wrong type.
pub(crate) fn parse_lenient<T: DeserializeOwned>(mut document: Value) -> (Option<T>, Vec<FieldError>) {
    let mut wrong = Vec::new();
    loop {
        let mut unknown = Vec::new();
        let mut report_unknown = |path: Path<'_>| unknown.push(unknown_key(field(&path)));
        let deserializer = serde_ignored::Deserializer::new(document.clone(), &mut report_unknown);
        match serde_path_to_error::deserialize(deserializer) {
            Ok(parsed) => return (Some(parsed), unknown.into_iter().chain(wrong).collect()),
            Err(error) => {
                let error_here = FieldError::new(error.path(), error.inner().to_string());
                // A required value that was wrong is not missing as well.
                let is_known = error_here.message.starts_with("missing field")
                    && wrong.iter().any(|known: &FieldError| known.field.is_within(error_here.field.clone()));
                if !is_known {
                    wrong.push(error_here);
                }
                // What else is wrong shows without it.
                if wrong.len() >= MOST_ERRORS || !remove(&mut document, error.path()) {
                    return (None, unknown.into_iter().chain(wrong).collect());
                }
            }
        }
    }
}

/// Removes the value at this path, or the list that has it: other items keep their places. Returns whether there was one.
fn remove(document: &mut Value, path: &serde_path_to_error::Path) -> bool {
    use serde_path_to_error::Segment;
    let segments: Vec<&Segment> = path.iter().collect();
    let last = segments.iter().rposition(|segment| matches!(segment, Segment::Map { .. }));
    let Some((last, parents)) = last.and_then(|last| segments[..=last].split_last()) else { return false };
    let parent = parents.iter().try_fold(document, |value, segment| match segment {
        Segment::Map { key } => value.get_mut(key),
        Segment::Seq { index } => value.get_mut(index),
        _ => Some(value),
    });
    match (parent.and_then(Value::as_object_mut), last) {
        (Some(parent), Segment::Map { key }) => parent.remove(key).is_some(),
        _ => false,
    }
}

pub(crate) fn unknown_key(field: FieldPath) -> FieldError {
    FieldError::new(field, "is not a known key: correct it, or remove it")
}

fn field(path: &Path<'_>) -> FieldPath {
    match path {
        Path::Root => FieldPath::default(),
        Path::Seq { parent, index } => field(parent).index(*index),
        Path::Map { parent, key } => field(parent).join(key.clone()),
        Path::Some { parent } | Path::NewtypeStruct { parent } | Path::NewtypeVariant { parent } => {
            field(parent)
        }
    }
}
