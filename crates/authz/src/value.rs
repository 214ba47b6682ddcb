//! JSON values as Cedar values.

use cedar_policy::RestrictedExpression;
use serde_json::{Number, Value};

/// How deep lists and objects may be nested. Deeper values are omitted.
const DEPTH: usize = 10;
/// The whole part of the largest decimal.
const LARGEST: i64 = i64::MAX / 10_000;
/// The decimal places of Cedar's decimals.
const PLACES: usize = 4;

/// The value, unless it is null or nested too deep.
pub(crate) fn value(json: &Value) -> Option<RestrictedExpression> {
    at_depth(json, 0)
}

fn at_depth(json: &Value, depth: usize) -> Option<RestrictedExpression> {
    if depth > DEPTH {
        return None;
    }
    match json {
        Value::Null => None,
        Value::Bool(bool) => Some(RestrictedExpression::new_bool(*bool)),
        Value::Number(number) => Some(decimal(number)),
        Value::String(text) => Some(RestrictedExpression::new_string(text.clone())),
        Value::Array(items) => {
            let items = items.iter().filter_map(|item| at_depth(item, depth + 1));
            Some(RestrictedExpression::new_set(items))
        }
        Value::Object(fields) => {
            let fields =
                fields.iter().filter_map(|(name, field)| Some((name.clone(), at_depth(field, depth + 1)?)));
            RestrictedExpression::new_record(fields).ok()
        }
    }
}

/// The number as a decimal, or else as a record of its digits.
///
/// If it were omitted, `context has arg_n && context.arg_n.greaterThan(…)` would not forbid a number just because it is
/// too large. If it were rounded, a number just above a limit would be at the limit. A record does neither: it exists,
/// it equals no decimal, and comparing its order is an error, which denies.
fn decimal(number: &Number) -> RestrictedExpression {
    if let Some(text) = decimal_text(number) {
        return RestrictedExpression::new_decimal(text);
    }
    let digits = RestrictedExpression::new_string(number.to_string());
    let record = RestrictedExpression::new_record([("number".to_owned(), digits)]);
    // A record of one field has no duplicates.
    record.unwrap_or_else(|_| RestrictedExpression::new_set([]))
}

/// The number in the syntax of Cedar's `decimal`, if that is exact.
fn decimal_text(number: &Number) -> Option<String> {
    if let Some(whole) = number.as_i64() {
        return (-LARGEST..=LARGEST).contains(&whole).then(|| format!("{whole}.0"));
    }
    // The shortest digits of this number, without an exponent.
    let text = number.as_f64()?.to_string();
    let (whole, places) = text.split_once('.').unwrap_or((&text, "0"));
    // The whole part must be below the largest, so that the decimal places cannot exceed it.
    let fits = whole.parse::<i64>().is_ok_and(|whole| (-LARGEST + 1..LARGEST).contains(&whole));
    (fits && places.len() <= PLACES).then(|| format!("{whole}.{places}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(json: &str) -> Option<String> {
        decimal_text(&serde_json::from_str(json).unwrap())
    }

    #[test]
    fn a_number_is_a_decimal_only_if_that_is_exact() {
        for (json, decimal) in [
            ("0", "0.0"),
            ("-0.0", "-0.0"),
            ("5", "5.0"),
            ("-12.5", "-12.5"),
            ("1e3", "1000.0"),
            ("1.5e-3", "0.0015"),
            ("0.1234", "0.1234"),
            ("1732924800", "1732924800.0"),
            ("922337203685477", "922337203685477.0"),
            ("-922337203685477", "-922337203685477.0"),
        ] {
            assert_eq!(text(json).as_deref(), Some(decimal), "{json}");
            assert!(decimal.parse::<f64>().is_ok());
        }
        for json in [
            "0.12345",
            "0.30000000000000004",
            "922337203685478",
            "-922337203685478",
            "9223372036854775807",
            "18446744073709551615",
            "922337203685477.9",
            "1e15",
            "1e300",
            "-1e300",
            "1e-300",
            "123456789012345678901234567890",
        ] {
            assert_eq!(text(json), None, "{json}");
        }
    }
}
