//! Durations in the format of Go's `time` package: `30s`, `1m30s`, `1h0m0s`.
//!
//! Needed permanently: fields of the API and of configuration files have this format.

use std::time::Duration;

/// The text is not a duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a duration: write numbers with units, such as 30s, 1m30s or 500ms")]
pub struct DurationError(String);

/// The units, with their lengths in nanoseconds.
const UNITS: [(&str, u128); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// The duration that a text denotes. It is never negative, and never longer than Go's maximum (292 years).
pub fn parse(text: &str) -> Result<Duration, DurationError> {
    let nanoseconds = if text == "0" { Some(0) } else { sum(text) };
    nanoseconds.map(Duration::from_nanos).ok_or_else(|| DurationError(text.to_owned()))
}

/// The text of a duration, as `Duration.String` formats it.
pub fn format(time: Duration) -> String {
    let nanoseconds = time.as_nanos();
    match nanoseconds {
        0 => "0s".to_owned(),
        1..1_000 => format!("{nanoseconds}ns"),
        1_000..1_000_000 => format!("{}µs", decimal(nanoseconds, 3)),
        1_000_000..1_000_000_000 => format!("{}ms", decimal(nanoseconds, 6)),
        _ => {
            let (minutes, rest) = (nanoseconds / 60_000_000_000, nanoseconds % 60_000_000_000);
            let seconds = decimal(rest, 9);
            match (minutes / 60, minutes % 60) {
                (0, 0) => format!("{seconds}s"),
                (0, minutes) => format!("{minutes}m{seconds}s"),
                (hours, minutes) => format!("{hours}h{minutes}m{seconds}s"),
            }
        }
    }
}

fn sum(text: &str) -> Option<u64> {
    let mut rest = text;
    let mut total = 0_u128;
    while !rest.is_empty() || text.is_empty() {
        let number_end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, after) = rest.split_at(number_end);
        let unit_end = after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len());
        let (unit, after) = after.split_at(unit_end);
        let (_, unit) = UNITS.iter().find(|(name, _)| *name == unit)?;
        total = total.checked_add(product(number, *unit)?)?;
        rest = after;
    }
    i64::try_from(total).ok()?.try_into().ok()
}

/// A decimal number times a unit, without the rounding of floating point.
fn product(number: &str, unit: u128) -> Option<u128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = |text: &str| if text.is_empty() { Some(0) } else { text.parse::<u128>().ok() };
    if whole.is_empty() && fraction.is_empty() || fraction.contains('.') {
        return None;
    }
    // Further digits are fractions of a nanosecond in every unit.
    let fraction = fraction.get(..18).unwrap_or(fraction);
    let scale = 10_u128.pow(u32::try_from(fraction.len()).ok()?);
    digits(whole)?.checked_mul(unit)?.checked_add(digits(fraction)? * unit / scale)
}

/// A count of the `places`th decimal part, as a decimal number without trailing zeros.
fn decimal(count: u128, places: u32) -> String {
    let unit = 10_u128.pow(places);
    let (whole, part) = (count / unit, count % unit);
    if part == 0 {
        return whole.to_string();
    }
    let part = format!("{part:0width$}", width = places as usize);
    format!("{whole}.{}", part.trim_end_matches('0'))
}

/// A duration that is serialised as text, for items of lists and maps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
#[serde(transparent)]
pub struct Text(#[serde(with = "text")] pub Duration);

/// `#[serde(with = "duration::text")]`: a field with a duration as text.
pub mod text {
    use super::{format, parse};
    use serde::{Deserialize, Deserializer, Serializer, de::Error};
    use std::time::Duration;

    /// Writes the field.
    pub fn serialize<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&format(*time))
    }

    /// Reads the field.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        parse(&String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

/// `#[serde(with = "duration::nanoseconds")]`: a field with a duration as a number of nanoseconds, or, when read, as
/// text.
pub mod nanoseconds {
    use super::parse;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};
    use std::time::Duration;

    #[derive(Deserialize)]
    #[serde(untagged, expecting = "expected a duration such as 10s or a number of nanoseconds")]
    enum Written {
        Nanoseconds(u64),
        Text(String),
    }

    /// Writes the field.
    pub fn serialize<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u128(time.as_nanos())
    }

    /// Reads the field.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        match Option::deserialize(deserializer)? {
            None => Ok(Duration::ZERO),
            Some(Written::Nanoseconds(count)) => Ok(Duration::from_nanos(count)),
            Some(Written::Text(text)) => parse(&text).map_err(D::Error::custom),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_parses_what_go_parses() {
        for (text, nanoseconds) in [
            ("0", 0),
            ("30s", 30_000_000_000),
            ("1m30s", 90_000_000_000),
            ("1.5h", 5_400_000_000_000),
            (".5ms", 500_000),
            ("1.s", 1_000_000_000),
            ("0.1234567899s", 123_456_789),
            ("0.00000000000000000000001h", 0),
            ("1us1µs1μs", 3_000),
            ("2562047h47m16.854775807s", i64::MAX as u64),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_nanos(nanoseconds)), "{text}");
        }
    }

    #[test]
    fn other_texts_are_rejected() {
        for text in [
            "",
            "30",
            "s",
            ".s",
            "1d",
            "-1s",
            "1..5s",
            "1.2.3s",
            "2562047h47m16.854775808s",
            "1h 30m",
            "1e3s",
        ] {
            assert_eq!(parse(text), Err(DurationError(text.to_owned())), "{text}");
        }
    }

    #[test]
    fn it_formats_as_go_formats() {
        for (millis, text) in [
            (0, "0s"),
            (250, "250ms"),
            (1_500, "1.5s"),
            (60_000, "1m0s"),
            (90_010, "1m30.01s"),
            (3_600_000, "1h0m0s"),
            (90_000_000, "25h0m0s"),
        ] {
            assert_eq!(format(Duration::from_millis(millis)), text);
        }
        assert_eq!(format(Duration::from_nanos(1)), "1ns");
        assert_eq!(format(Duration::from_nanos(1_050)), "1.05µs");
        assert_eq!(format(Duration::from_nanos(1_000_001)), "1.000001ms");
    }
}
