//! Durations as Go writes them.

use std::{borrow::Cow, fmt, str::FromStr};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// A duration such as `30s` or `1h30m`, kept as it was written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(transparent)]
pub struct Duration(String);

/// A text that is not a duration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotADuration(String);

impl fmt::Display for NotADuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is not a duration: write numbers with units, such as 30s, 1m30s or 500ms", self.0)
    }
}

impl std::error::Error for NotADuration {}

impl Duration {
    /// The pattern of durations that the API server checks.
    pub(crate) const PATTERN: &str = "^([0-9]+(\\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$";

    /// The text as the user wrote it.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The time it stands for.
    pub fn to_std(&self) -> Result<std::time::Duration, NotADuration> {
        let not_a_duration = || NotADuration(self.0.clone());
        let mut rest = self.0.as_str();
        if rest == "0" {
            return Ok(std::time::Duration::ZERO);
        }
        let mut total = std::time::Duration::ZERO;
        while !rest.is_empty() {
            let number_end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
            let (number, after) = rest.split_at(number_end);
            let unit_end = after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len());
            let (unit, after) = after.split_at(unit_end);
            let number = f64::from_str(number).map_err(|_| not_a_duration())?;
            let seconds = number * seconds_per(unit).ok_or_else(not_a_duration)?;
            total += std::time::Duration::try_from_secs_f64(seconds).map_err(|_| not_a_duration())?;
            rest = after;
        }
        if self.0.is_empty() { Err(not_a_duration()) } else { Ok(total) }
    }
}

fn seconds_per(unit: &str) -> Option<f64> {
    Some(match unit {
        "ns" => 1e-9,
        "us" | "µs" | "μs" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return None,
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_reads_what_go_reads() {
        for (text, millis) in
            [("30s", 30_000), ("1m30s", 90_000), ("1.5h", 5_400_000), ("250ms", 250), ("0", 0)]
        {
            assert_eq!(Duration::from(text).to_std(), Ok(std::time::Duration::from_millis(millis)), "{text}");
        }
    }

    #[test]
    fn it_refuses_the_rest() {
        for text in ["", "30", "s", "1d", "-1s", "1..5s", "99999999999999999999999h", "1h 30m"] {
            assert!(Duration::from(text).to_std().is_err(), "{text}");
        }
    }
}
