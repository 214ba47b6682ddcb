//! Fields whose zero means that they are not set, as `omitempty` does in Go.
//!
//! Users and schema defaults write `false`, `0` and `""` for such fields. These are dropped when an object is read, so
//! that code sees one form only, and a file that is made of it has the same content as ToolHive's.

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, Error},
};
use serde_json::Value;

use crate::{Duration, RawValue};

/// `#[serde(deserialize_with = "unset::non_zero")]`: a field that is not set if it is false, 0, "" or {}.
pub(crate) fn non_zero<'de, T, D>(deserializer: D) -> Result<Option<T>, D::Error>
where
    T: DeserializeOwned,
    D: Deserializer<'de>,
{
    let value = Value::deserialize(deserializer)?;
    let is_zero = match &value {
        Value::Null | Value::Bool(false) => true,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(true) | Value::Array(_) => false,
    };
    if is_zero { Ok(None) } else { T::deserialize(value).map(Some).map_err(D::Error::custom) }
}

/// The same for a duration, which is not set if it is `0s` either.
pub(crate) fn non_zero_duration<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Duration>, D::Error> {
    let duration: Option<Duration> = non_zero(deserializer)?;
    let is_set = |duration: &Duration| duration.to_std() != Ok(std::time::Duration::ZERO);
    Ok(duration.filter(is_set))
}

/// The same for a value of any type, of which only {} counts as not set.
pub(crate) fn non_empty_raw<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<RawValue>, D::Error> {
    let value: Option<RawValue> = Option::deserialize(deserializer)?;
    Ok(value.filter(|value| value.0.as_object().is_none_or(|fields| !fields.is_empty())))
}
