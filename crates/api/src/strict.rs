//! Parsing of documents that no schema has checked: a file, or a part of an object that is stored as it was written.

use serde::de::DeserializeOwned;
use serde_ignored::Path;
use serde_json::Value;
use serde_path_to_error::Segment;
use skep_config::{FieldError, FieldPath};

/// How many values of a wrong type are reported.
const MOST_ERRORS: usize = 50;

/// The document as a `T`, in which every key must be known.
pub fn parse<T: DeserializeOwned>(document: Value) -> Result<T, Vec<FieldError>> {
    match parse_lenient(document, Texts::Quoted) {
        (Some(parsed), errors) if errors.is_empty() => Ok(parsed),
        (_, errors) => Err(errors),
    }
}

/// What is a text where one is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Texts {
    Quoted,
    /// Also a number or a boolean, as ToolHive reads YAML: `ratio: 0.4`.
    AnyScalar,
}

/// The document as a `T` without what is wrong with it, and all that is: unknown keys, and values of a wrong type.
pub(crate) fn parse_lenient<T: DeserializeOwned>(
    mut document: Value,
    texts: Texts,
) -> (Option<T>, Vec<FieldError>) {
    let mut wrong = Vec::new();
    loop {
        let mut unknown = Vec::new();
        let mut report_unknown = |path: Path<'_>| unknown.push(unknown_key(field(&path)));
        let deserializer = serde_ignored::Deserializer::new(document.clone(), &mut report_unknown);
        match serde_path_to_error::deserialize(deserializer) {
            Ok(parsed) => return (Some(parsed), unknown.into_iter().chain(wrong).collect()),
            Err(error) if texts == Texts::AnyScalar && spell(&mut document, &error) => {}
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

/// Spells a number or a boolean for which a text is needed. Returns whether it was one.
fn spell(document: &mut Value, error: &serde_path_to_error::Error<serde_json::Error>) -> bool {
    let segments: Vec<&Segment> = error.path().iter().collect();
    let needs_text = error.inner().to_string().ends_with("expected a string");
    match found(document, &segments).filter(|value| needs_text && (value.is_number() || value.is_boolean())) {
        Some(value) => {
            *value = value.to_string().into();
            true
        }
        None => false,
    }
}

fn found<'a>(document: &'a mut Value, path: &[&Segment]) -> Option<&'a mut Value> {
    path.iter().try_fold(document, |value, segment| match segment {
        Segment::Map { key } => value.get_mut(key),
        Segment::Seq { index } => value.get_mut(index),
        _ => Some(value),
    })
}

/// Removes the value at this path, or the list that has it: other items keep their places. Returns whether there was one.
fn remove(document: &mut Value, path: &serde_path_to_error::Path) -> bool {
    let segments: Vec<&Segment> = path.iter().collect();
    let last = segments.iter().rposition(|segment| matches!(segment, Segment::Map { .. }));
    let Some((last, parents)) = last.and_then(|last| segments[..=last].split_last()) else { return false };
    match (found(document, parents).and_then(Value::as_object_mut), last) {
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

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Debug, Deserialize, PartialEq)]
    struct Part {
        text: Option<String>,
        number: Option<i64>,
    }

    #[test]
    fn numbers_and_booleans_are_texts_where_those_are_needed() {
        for (value, text) in
            [(json!(0.4), "0.4"), (json!(12), "12"), (json!(true), "true"), (json!("a"), "a")]
        {
            let document = json!([{"number": 1, "text": value}]);
            assert_eq!(parse::<Vec<Part>>(document.clone()).is_ok(), value.is_string());
            let (parsed, errors) = parse_lenient::<Vec<Part>>(document, Texts::AnyScalar);
            assert_eq!(parsed.unwrap(), [Part { text: Some(text.into()), number: Some(1) }]);
            assert_eq!(errors, []);
        }
        for wrong in [json!({"text": [1]}), json!({"text": {"a": 1}}), json!({"number": "1"})] {
            assert_eq!(parse_lenient::<Part>(wrong.clone(), Texts::AnyScalar).1.len(), 1, "{wrong}");
        }
    }
}
