//! Durations as Go writes them.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use skep_config::duration::{DurationError, parse};

/// A duration such as `30s` or `1h30m`, stored as it was written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(transparent)]
pub struct Duration(String);

impl Duration {
    /// The pattern of durations that the API server checks.
    pub(crate) const PATTERN: &str = "^([0-9]+(\\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$";

    /// The text as the user wrote it.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The duration.
    pub fn to_std(&self) -> Result<std::time::Duration, DurationError> {
        parse(&self.0)
    }
}

impl From<&str> for Duration {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl JsonSchema for Duration {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Duration".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "pattern": Self::PATTERN})
    }
}

/// A duration whose text is checked by a controller, not at admission: `#[schemars(transform = unchecked)]`.
pub(crate) fn unchecked(schema: &mut Schema) {
    schema.remove("pattern");
}
