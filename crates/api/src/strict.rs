//! Parsing of documents that no schema has checked: a file, or a part of an object that is stored as it was written.

use serde::de::DeserializeOwned;
use serde_ignored::Path;
use serde_json::Value;
use skep_config::{FieldError, FieldPath};

/// The document as a `T`, in which every key must be known.
pub fn parse<T: DeserializeOwned>(document: Value) -> Result<T, Vec<FieldError>> {
    match parse_lenient(document) {
        (Some(parsed), errors) if errors.is_empty() => Ok(parsed),
        (_, errors) => Err(errors),
    }
}

/// The document as a `T`, and what is wrong with it: all unknown keys, and the first value of a wrong type.
pub(crate) fn parse_lenient<T: DeserializeOwned>(document: Value) -> (Option<T>, Vec<FieldError>) {
    let mut errors = Vec::new();
    let mut report_unknown = |path: Path<'_>| errors.push(unknown_key(field(&path)));
    let deserializer = serde_ignored::Deserializer::new(document, &mut report_unknown);
    let parsed = serde_path_to_error::deserialize(deserializer)
        .map_err(|error| FieldError::new(error.path(), error.inner().to_string()));
    match parsed {
        Ok(parsed) => (Some(parsed), errors),
        Err(error) => {
            errors.push(error);
            (None, errors)
        }
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
