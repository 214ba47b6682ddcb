//! Values as text.

use std::{borrow::Cow, collections::BTreeMap, iter::Peekable, str::Chars};

use serde_json::{Number, Value};

/// What a value is, for messages.
pub(super) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "no value",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// A value as a template writes it. Lists and objects are JSON, which can be read again; Go has a notation of its own.
pub(super) fn text_of(value: &Value) -> Cow<'_, str> {
    match value {
        Value::Null => "<no value>".into(),
        Value::Bool(value) => value.to_string().into(),
        Value::Number(number) => number_text(number).into(),
        Value::String(text) => text.into(),
        Value::Array(_) | Value::Object(_) => json(value).into(),
    }
}

/// A value as JSON, with keys in the order that Go writes them in.
pub(super) fn json(value: &Value) -> String {
    match value {
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(json).collect();
            format!("[{}]", items.join(","))
        }
        Value::Object(map) => {
            let fields: BTreeMap<&String, &Value> = map.iter().collect();
            let field =
                |(key, value): (&&String, &&Value)| format!("{}:{}", Value::from(key.as_str()), json(value));
            format!("{{{}}}", fields.iter().map(field).collect::<Vec<_>>().join(","))
        }
        other => other.to_string(),
    }
}

/// A number as Go's `%v` writes it.
fn number_text(number: &Number) -> String {
    match number.as_f64().filter(|_| number.is_f64()) {
        Some(float) => float_text(float),
        None => number.to_string(),
    }
}

/// The shortest text of a float, with an exponent where that is small or large (Go's `%g`).
fn float_text(float: f64) -> String {
    let scientific = format!("{float:e}");
    let Some((digits, exponent)) = scientific.split_once('e') else { return scientific };
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if (-4..6).contains(&exponent) { float.to_string() } else { exponential(digits, exponent) }
}

fn exponential(digits: &str, exponent: i32) -> String {
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

/// A float with an exponent, and so many decimals.
fn scientific(float: f64, precision: usize) -> String {
    let text = format!("{float:.precision$e}");
    match text.split_once('e') {
        Some((digits, exponent)) => exponential(digits, exponent.parse().unwrap_or_default()),
        None => text,
    }
}

/// A string in quotes, with Go's escapes.
pub(super) fn go_quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\x07' => quoted.push_str("\\a"),
            '\x08' => quoted.push_str("\\b"),
            '\x0c' => quoted.push_str("\\f"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\x0b' => quoted.push_str("\\v"),
            c if (c as u32) < 0x20 || c == '\x7f' => quoted.push_str(&format!("\\x{:02x}", c as u32)),
            c if c.is_control() => quoted.push_str(&format!("\\u{:04x}", c as u32)),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// The widest field of a format, as in Go.
const MAX_WIDTH: usize = 1_000_000;

/// Values in a text with verbs, as Go's `Sprintf` writes them.
pub(super) fn printf(format: &str, values: &[Cow<'_, Value>]) -> String {
    let mut text = String::new();
    let mut values = values.iter();
    let mut chars = format.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '%' {
            text.push(c);
            continue;
        }
        let mut spec = Spec::default();
        while let Some(flag) = chars.next_if(|c| "+-# 0".contains(*c)) {
            match flag {
                '+' => spec.plus = true,
                '-' => spec.left = true,
                '#' => spec.sharp = true,
                ' ' => spec.space = true,
                _ => spec.zero = true,
            }
        }
        spec.width = digits(&mut chars);
        if chars.next_if_eq(&'.').is_some() {
            spec.precision = Some(digits(&mut chars).unwrap_or(0));
        }
        match chars.next() {
            None => text.push_str("%!(NOVERB)"),
            Some('%') => text.push('%'),
            Some(verb) => match values.next() {
                Some(value) => text.push_str(&spec.written(verb, value)),
                None => text.push_str(&format!("%!{verb}(MISSING)")),
            },
        }
    }
    let extra: Vec<_> = values.map(|value| format!("{}={}", go_type(value), text_of(value))).collect();
    if !extra.is_empty() {
        text.push_str(&format!("%!(EXTRA {})", extra.join(", ")));
    }
    text
}

/// The number at this position, if there is one.
fn digits(chars: &mut Peekable<Chars<'_>>) -> Option<usize> {
    let mut number = None;
    while let Some(digit) = chars.next_if(char::is_ascii_digit) {
        let digit = digit.to_digit(10).unwrap_or_default() as usize;
        number = Some((number.unwrap_or(0) * 10 + digit).min(MAX_WIDTH));
    }
    number
}

/// How one value is written.
#[derive(Default)]
struct Spec {
    plus: bool,
    left: bool,
    sharp: bool,
    space: bool,
    zero: bool,
    width: Option<usize>,
    precision: Option<usize>,
}

impl Spec {
    fn written(&self, verb: char, value: &Value) -> String {
        let integer = value.as_i64().or_else(|| {
            let float = value.as_f64().filter(|float| float.fract() == 0.0 && float.abs() < 9e15);
            float.map(|float| float as i64)
        });
        let bare = match (verb, value) {
            ('v', Value::Null) => "<nil>".into(),
            ('v' | 's', Value::String(text)) => self.cut(text),
            ('v', Value::Number(number)) => {
                self.signed(number_text(number), !value.to_string().starts_with('-'))
            }
            ('v', value) => text_of(value).into_owned(),
            ('s', Value::Array(_) | Value::Object(_)) => text_of(value).into_owned(),
            ('t', Value::Bool(value)) => value.to_string(),
            ('q', Value::String(text)) => go_quoted(&self.cut(text)),
            ('x', Value::String(text)) => text.bytes().map(|byte| format!("{byte:02x}")).collect(),
            ('X', Value::String(text)) => text.bytes().map(|byte| format!("{byte:02X}")).collect(),
            ('d' | 'x' | 'X' | 'o' | 'b' | 'c', Value::Number(_)) => match integer {
                Some(integer) => self.integer(verb, integer),
                None => bad(verb, value),
            },
            ('f' | 'F' | 'e' | 'g', Value::Number(number)) => {
                let float = number.as_f64().unwrap_or_default();
                let precision = self.precision.map(|precision| precision.min(100));
                let text = match (verb, precision) {
                    ('e', precision) => scientific(float, precision.unwrap_or(6)),
                    ('g', None) => float_text(float),
                    (_, precision) => format!("{float:.*}", precision.unwrap_or(6)),
                };
                self.signed(text, float >= 0.0)
            }
            _ => bad(verb, value),
        };
        self.padded(bare, value.is_number())
    }

    /// At most as many characters as the precision has.
    fn cut(&self, text: &str) -> String {
        text.chars().take(self.precision.unwrap_or(usize::MAX)).collect()
    }

    fn integer(&self, verb: char, integer: i64) -> String {
        let size = integer.unsigned_abs();
        let digits = match verb {
            'x' if self.sharp => format!("{size:#x}"),
            'X' if self.sharp => format!("0X{size:X}"),
            'x' => format!("{size:x}"),
            'X' => format!("{size:X}"),
            'o' => format!("{size:o}"),
            'b' => format!("{size:b}"),
            'c' => return u32::try_from(integer).ok().and_then(char::from_u32).unwrap_or('\u{fffd}').into(),
            _ => size.to_string(),
        };
        let zeros = self.precision.unwrap_or_default().saturating_sub(digits.len());
        let digits = format!("{}{digits}", "0".repeat(zeros));
        if integer < 0 { format!("-{digits}") } else { self.signed(digits, true) }
    }

    fn signed(&self, text: String, is_positive: bool) -> String {
        match (is_positive, self.plus, self.space) {
            (true, true, _) => format!("+{text}"),
            (true, false, true) => format!(" {text}"),
            _ => text,
        }
    }

    fn padded(&self, text: String, is_number: bool) -> String {
        let missing = self.width.unwrap_or_default().saturating_sub(text.chars().count());
        if self.left {
            return text + &" ".repeat(missing);
        }
        if self.zero && is_number {
            let digits = text.trim_start_matches(['-', '+', ' ']);
            let sign = &text[..text.len() - digits.len()];
            return format!("{sign}{}{digits}", "0".repeat(missing));
        }
        " ".repeat(missing) + &text
    }
}

fn bad(verb: char, value: &Value) -> String {
    match value {
        Value::Null => format!("%!{verb}(<nil>)"),
        value => format!("%!{verb}({}={})", go_type(value), text_of(value)),
    }
}

/// What Go calls the type of a value.
fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}
