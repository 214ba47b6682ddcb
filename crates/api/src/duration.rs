//! Durations as Go writes them.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize};
use skep_config::duration::{DurationError, format, parse};

/// A duration such as `30s` or `1h30m`, stored as it was written. It may be invalid: not every schema checks it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Duration(String);

impl<'de> Deserialize<'de> for Duration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Numbers have no unit.
        let expected = |_| serde::de::Error::custom("must be a duration with its unit, such as 30s");
        String::deserialize(deserializer).map(Self).map_err(expected)
    }
}

impl Duration {
    /// The pattern of durations that the API server checks.
    pub(crate) const PATTERN: &str = "^([0-9]+(\\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$";

    /// The text as the user wrote it.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The same duration as Go writes it: `30m0s` for `30m`. An invalid one stays as it is.
    #[must_use]
    pub fn normalised(self) -> Self {
        self.to_std().map_or(self, |duration| Self(format(duration)))
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

impl From<std::time::Duration> for Duration {
    fn from(duration: std::time::Duration) -> Self {
        Self(format(duration))
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

/// `#[serde(deserialize_with = "duration::flat_or_nested")]`: a duration as Kubernetes writes it, or as `duration` below a
/// key of its own, as Go writes the same type to a YAML file.
pub(crate) fn flat_or_nested<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Nested {
        duration: Duration,
    }
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "expected a duration such as 1m30s")]
    enum Written {
        Flat(Duration),
        Nested(Nested),
    }
    Ok(match Written::deserialize(deserializer)? {
        Written::Flat(duration) | Written::Nested(Nested { duration }) => duration,
    })
}
