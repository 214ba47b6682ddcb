//! Amounts of CPU, memory and storage, as Kubernetes writes them.
//!
//! Kubernetes reads a quantity into a number and writes the number anew: with the largest suffix of the same family that
//! leaves it whole. But a text that its quick check takes for such a form already is kept to the letter, and the check
//! is generous: `1.234`, `+5` and `007` stay as they are. What is compared with live objects has to do the same.

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

/// Suffixes for powers of 1024, and how many digits before them the quick check looks at: so many cannot overflow.
const BINARY: [(&str, u32, usize); 6] =
    [("Ki", 1, 11), ("Mi", 2, 8), ("Gi", 3, 5), ("Ti", 4, 2), ("Pi", 5, 0), ("Ei", 6, 0)];

/// No quantity is finer: what is left over is rounded up.
const NANO: i32 = -9;

/// The most that a binary quantity may be. Kubernetes takes a larger one for this one.
const MOST: u128 = i64::MAX as u128;

/// The quantity as Kubernetes writes it; nothing if the text is none.
///
/// Kubernetes takes two more that nobody means, and that are none here: numbers of so many digits that 128 bits do not
/// hold them, and some units without a number.
pub fn quantity(text: &str) -> Option<String> {
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

/// The suffix of a power of ten. One that is too large for all of them has none, so that `1000E` becomes `1`: a flaw of
/// Kubernetes that stays.
fn suffix(exponent: i32) -> String {
    DECIMAL.iter().find(|(_, of)| *of == exponent).map_or("", |(name, _)| name).into()
}

/// A quantity, taken apart.
struct Number<'a> {
    text: &'a str,
    negative: bool,
    /// Without zeros before it, but one if there is nothing else.
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

    fn binary(&self, power: u32, quick: usize) -> Option<String> {
        let mantissa = self.mantissa()?;
        if self.fraction.is_empty() && self.whole.len() <= quick && mantissa % 8 != 0 {
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

    /// The quantity in billionths, rounded up, and no more than [`MOST`].
    fn nanos(&self, mantissa: u128, unit: u128) -> Option<u128> {
        let most = MOST * 1_000_000_000;
        let finer = self.places()? + NANO;
        let power = 10_u128.checked_pow(finer.unsigned_abs())?;
        let nanos = if finer > 0 {
            mantissa.checked_mul(unit)?.div_ceil(power)
        } else {
            // What does not fit here is far above the most.
            mantissa.checked_mul(unit).and_then(|amount| amount.checked_mul(power)).unwrap_or(most)
        };
        Some(nanos.min(most))
    }

    fn signed(&self, amount: u128, suffix: &str) -> String {
        let sign = if self.negative { "-" } else { "" };
        format!("{sign}{amount}{suffix}")
    }
}

/// The digits that a text begins with, and the rest.
fn digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What an API server of Kubernetes 1.34 gives back.
    #[test]
    fn quantities_are_written_as_kubernetes_writes_them() {
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
            assert_eq!(quantity(given).as_deref(), Some(written), "{given}");
        }
    }

    #[test]
    fn zero_is_zero_in_every_unit() {
        for given in ["0", "0Mi", "0.000", "-0", "0e3", "0Ei"] {
            assert_eq!(quantity(given).as_deref(), Some("0"), "{given}");
        }
    }

    #[test]
    fn what_the_quick_check_takes_for_the_shortest_form_is_kept_to_the_letter() {
        for kept in ["1.234", "+5", "007", "1.500k", "1e3", "1E3", "12Ki", "05Gi"] {
            assert_eq!(quantity(kept).as_deref(), Some(kept));
        }
        for (given, written) in [("1.2340", "1234m"), ("10e2", "1e3"), ("8192Ki", "8Mi"), ("5.0Gi", "5Gi")] {
            assert_eq!(quantity(given).as_deref(), Some(written), "{given}");
        }
    }

    #[test]
    fn binary_amounts_that_are_small_or_not_whole_are_written_in_decimal() {
        for (given, written) in [("0.5Ki", "512"), ("1.1Ki", "1126400m"), ("0.0000000001Ki", "103n")] {
            assert_eq!(quantity(given).as_deref(), Some(written), "{given}");
        }
    }

    #[test]
    fn what_is_too_fine_is_rounded_up_and_what_is_too_much_is_cut() {
        for (given, written) in [
            ("0.1n", "1n"),
            ("1.0000000001", "1000000001n"),
            ("1e-400", "1e-9"),
            ("16Ei", "9223372036854775807"),
            ("99999999999999999999Ei", "9223372036854775807"),
            ("1000E", "1"),
        ] {
            assert_eq!(quantity(given).as_deref(), Some(written), "{given}");
        }
    }

    #[test]
    fn other_texts_are_no_quantities() {
        for given in ["", " ", "lots", "1e3x", "1 Gi", "1.2.3", "1gi", "0x10", "1e", "--1", "1Kim", "m", "."]
        {
            assert_eq!(quantity(given), None, "{given}");
        }
    }
}
