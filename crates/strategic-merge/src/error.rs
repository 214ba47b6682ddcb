//! The error of an invalid patch.

use serde_json::Value;

/// A patch cannot be applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {problem}")]
pub struct Error {
    pub(crate) path: String,
    pub(crate) problem: Problem,
}

impl Error {
    /// The path in the patch, such as `podTemplateSpec.spec.containers[1]`.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// What is wrong at that place.
    pub fn message(&self) -> String {
        self.problem.to_string()
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Problem {
    #[error("{0}")]
    Undecodable(String),
    #[error("{key} is missing, and {list} are merged by it")]
    NoKey { key: &'static str, list: String },
    #[error("{key} is missing in item {index} of the template, and {list} are merged by it")]
    NoKeyInTemplate { key: &'static str, list: String, index: usize },
    #[error("{actual} instead of {expected}")]
    WrongType { actual: &'static str, expected: &'static str },
    #[error("{actual} that cannot be merged with {template} of the template")]
    Mismatch { actual: &'static str, template: &'static str },
    #[error("{0} is not a known directive: write delete or replace")]
    UnknownDirective(Value),
    #[error("{0} is not among the $retainKeys, and the patch sets it")]
    NotRetained(String),
    #[error("lists its items in another order than the patch does, or not all of them")]
    OtherOrder,
    #[error("the list is replaced as a whole, so the order of its items cannot be set")]
    NotMerged,
    #[error("the items of the list are objects: delete them with `$patch: delete`")]
    NotScalars,
}

/// The type of a value, in words.
pub(crate) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// A value does not have the expected type.
pub(crate) fn not(expected: &'static str, actual: &Value) -> Problem {
    Problem::WrongType { actual: kind(actual), expected }
}
