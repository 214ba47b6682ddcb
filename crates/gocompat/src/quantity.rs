//! Quantities of CPU, memory and storage in the form in which Kubernetes stores them (`resource.Quantity`).
//!
//! Kubernetes parses a quantity into a number and formats the number again, with the largest suffix of the same
//! family that leaves it whole. But a text that passes its fast path is stored unchanged, and the fast path is
//! generous: `1.234`, `+5` and `007` stay. Needed for as long as the API server does this: a desired object is
//! compared with what it stores.

/// Suffixes for powers of ten.
const DECIMAL: [(&str, i32); 10] = [
    ("n", NANO),
    ("u", -6),
    ("m", -3),
    ("", 0),
    ("k", 3),
    ("M", 6),
    ("G", 9),
    ("T", 12),
    ("P", 15),
    ("E", 18),
];

/// Suffixes for powers of 1024, and how many digits before them the fast path accepts: so many cannot overflow.
const BINARY: [(&str, u32, usize); 6] =
    [("Ki", 1, 11), ("Mi", 2, 8), ("Gi", 3, 5), ("Ti", 4, 2), ("Pi", 5, 0), ("Ei", 6, 0)];

/// The finest unit: a remainder is rounded up.
const NANO: i32 = -9;

/// The largest binary quantity. Kubernetes replaces a larger one by it.
const LARGEST: u128 = i64::MAX as u128;

/// The quantity as Kubernetes stores it, or `None` if the text is not a quantity.
///
/// Kubernetes accepts two forms that are rejected here because no user means them: numbers that do not fit into 128
/// bits, and some units without a number.
pub fn canonical(text: &str) -> Option<String> {
    let text = text.trim();
    if !text.trim_start_matches(['+', '-', '.']).starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let number = Number::of(text);
    if let Some((_, power, digits)) = BINARY.iter().find(|(name, ..)| *name == number.suffix) {
        return number.binary(*power, *digits);
    }
    if let Some((_, exponent)) = DECIMAL.iter().find(|(name, _)| *name == number.suffix) {
        return number.decimal(*exponent, suffix);
    }
    let exponent = number.suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
    number.decimal(exponent, |exponent| if exponent == 0 { String::new() } else { format!("e{exponent}") })
}

/// The suffix of a power of ten. One that exceeds all suffixes has none, so that `1000E` becomes `1`: a bug of
/// Kubernetes that has to be followed.
fn suffix(exponent: i32) -> String {
    DECIMAL.iter().find(|(_, of)| *of == exponent).map_or("", |(name, _)| name).into()
}

/// A quantity, split into its parts.
struct Number<'a> {
    text: &'a str,
    negative: bool,
    /// Without leading zeros, but `0` if there are no other digits.
    whole: &'a str,
    fraction: &'a str,
    suffix: &'a str,
}

impl<'a> Number<'a> {
    fn of(text: &'a str) -> Self {
        let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
        let (whole, rest) = digits(unsigned);
        let (fraction, suffix) = rest.strip_prefix('.').map_or(("", rest), digits);
        let whole = Some(whole.trim_start_matches('0')).filter(|whole| !whole.is_empty()).unwrap_or("0");
        Self { text, negative: text.starts_with('-'), whole, fraction, suffix }
    }

    /// All digits as one number: the quantity times ten to the power of the fraction's length.
    fn mantissa(&self) -> Option<u128> {
        format!("{}{}", self.whole, self.fraction).parse().ok()
    }

    fn places(&self) -> Option<i32> {
        self.fraction.len().try_into().ok()
    }

    fn decimal(&self, exponent: i32, suffix: impl Fn(i32) -> String) -> Option<String> {
        let scale = exponent.checked_sub(self.places()?)?;
        if self.whole.len() + self.fraction.len() <= 18 && scale >= NANO {
            let ends_in_thousands = format!("{}{}", self.whole, self.fraction).ends_with("000");
            if scale % 3 == 0 && !ends_in_thousands && self.whole != "0" {
                return Some(self.text.into());
            }
        }
        self.shortest(self.mantissa()?, scale, suffix)
    }

    /// An amount times ten to the power of the scale, with the largest power whose exponent is a multiple of three.
    fn shortest(&self, amount: u128, scale: i32, suffix: impl Fn(i32) -> String) -> Option<String> {
        if amount == 0 {
            return Some("0".into());
        }
        let (mut amount, mut scale) = if scale < NANO {
            let finer = 10_u128.checked_pow(scale.abs_diff(NANO));
            (finer.map_or(1, |finer| amount.div_ceil(finer)), NANO)
        } else {
            (amount, scale)
        };
        while amount % 10 == 0 {
            amount /= 10;
            scale = scale.checked_add(1)?;
        }
        let excess = scale.rem_euclid(3);
        let amount = amount.checked_mul(10_u128.pow(excess.unsigned_abs()))?;
        Some(self.signed(amount, &suffix(scale - excess)))
    }

    fn binary(&self, power: u32, fast: usize) -> Option<String> {
        let mantissa = self.mantissa()?;
        if self.fraction.is_empty() && self.whole.len() <= fast && mantissa % 8 != 0 {
            return Some(self.text.into());
        }
        let nanos = self.nanos(mantissa, 1024_u128.pow(power))?;
        let bytes = nanos / 1_000_000_000;
        if bytes < 1024 || nanos % 1_000_000_000 != 0 {
            return self.shortest(nanos, NANO, suffix);
        }
        let units = BINARY.iter().rev().map(|(name, power, _)| (*name, 1024_u128.pow(*power)));
        let (name, unit) = units.into_iter().find(|(_, unit)| bytes % unit == 0).unwrap_or(("", 1));
        Some(self.signed(bytes / unit, name))
    }

    /// The quantity in billionths, rounded up, and no more than [`LARGEST`].
    fn nanos(&self, mantissa: u128, unit: u128) -> Option<u128> {
        let largest = LARGEST * 1_000_000_000;
        let finer = self.places()? + NANO;
        let power = 10_u128.checked_pow(finer.unsigned_abs())?;
        let nanos = if finer > 0 {
            mantissa.checked_mul(unit)?.div_ceil(power)
        } else {
            // An overflow is far above the largest quantity.
            mantissa.checked_mul(unit).and_then(|amount| amount.checked_mul(power)).unwrap_or(largest)
        };
        Some(nanos.min(largest))
    }

    fn signed(&self, amount: u128, suffix: &str) -> String {
        let sign = if self.negative { "-" } else { "" };
        format!("{sign}{amount}{suffix}")
    }
}

/// The digits at the start of a text, and the rest.
fn digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As an API server of Kubernetes 1.34 returns them.
    #[test]
    fn quantities_equal_those_of_kubernetes() {
        for (given, written) in [
            ("0.5", "500m"),
            ("500m", "500m"),
            ("1", "1"),
            ("1000m", "1"),
            ("1.0", "1"),
            ("0.1", "100m"),
            ("1024Mi", "1Gi"),
            ("128Mi", "128Mi"),
            ("1.5Gi", "1536Mi"),
            ("2048", "2048"),
            ("2000", "2k"),
            ("100M", "100M"),
            ("1000M", "1G"),
            ("-1500m", "-1500m"),
            (" 1 ", "1"),
            ("1E", "1E"),
            ("100Ti", "100Ti"),
            ("1Ei", "1Ei"),
        ] {
            assert_eq!(canonical(given).as_deref(), Some(written), "{given}");
        }
    }

    #[test]
    fn zero_is_zero_in_every_unit() {
        for given in ["0", "0Mi", "0.000", "-0", "0e3", "0Ei"] {
            assert_eq!(canonical(given).as_deref(), Some("0"), "{given}");
        }
    }

    #[test]
    fn what_passes_the_fast_path_is_unchanged() {
        for kept in ["1.234", "+5", "007", "1.500k", "1e3", "1E3", "12Ki", "05Gi"] {
            assert_eq!(canonical(kept).as_deref(), Some(kept));
        }
        for (given, written) in [("1.2340", "1234m"), ("10e2", "1e3"), ("8192Ki", "8Mi"), ("5.0Gi", "5Gi")] {
            assert_eq!(canonical(given).as_deref(), Some(written), "{given}");
        }
    }

    #[test]
    fn binary_amounts_that_are_small_or_not_whole_are_written_in_decimal() {
        for (given, written) in [("0.5Ki", "512"), ("1.1Ki", "1126400m"), ("0.0000000001Ki", "103n")] {
            assert_eq!(canonical(given).as_deref(), Some(written), "{given}");
        }
    }

    #[test]
    fn what_is_too_fine_is_rounded_up_and_what_is_too_large_is_capped() {
        for (given, written) in [
            ("0.1n", "1n"),
            ("1.0000000001", "1000000001n"),
            ("1e-400", "1e-9"),
            ("16Ei", "9223372036854775807"),
            ("99999999999999999999Ei", "9223372036854775807"),
            ("1000E", "1"),
        ] {
            assert_eq!(canonical(given).as_deref(), Some(written), "{given}");
        }
    }

    #[test]
    fn other_texts_are_not_quantities() {
        for given in ["", " ", "lots", "1e3x", "1 Gi", "1.2.3", "1gi", "0x10", "1e", "--1", "1Kim", "m", "."]
        {
            assert_eq!(canonical(given), None, "{given}");
        }
    }
}
