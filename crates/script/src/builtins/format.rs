//! Formatted strings: `format` and `%`.

use super::Arguments;
use crate::{
    error::{Checked, Fault},
    operators::as_float,
    show::float_text,
    state::State,
    value::{Key, Object, Value},
};

/// How wide a field can be, and how many digits a number can have after the point.
const WIDEST: usize = 1_000;
const DIGITS: usize = 50;

/// How a value is written.
#[derive(Default)]
struct Form {
    fill: char,
    align: Option<char>,
    has_commas: bool,
    width: usize,
    digits: Option<usize>,
    /// The letter of the type.
    kind: Option<char>,
}

impl Form {
    /// Parses what is after a colon, or between `%` and the letter.
    fn parse(text: &str) -> Checked<Self> {
        let wrong = || Fault::new(format!("the format {:?} is not supported", super::shortened(text)));
        let mut form = Self { fill: ' ', ..Self::default() };
        let mut rest = text;
        let second = rest.chars().nth(1);
        if let (Some(fill), Some('<' | '>' | '^')) = (rest.chars().next(), second) {
            form.fill = fill;
            form.align = second;
            rest = &rest[fill.len_utf8() + 1..];
        } else if let Some(align @ ('<' | '>' | '^' | '-')) = rest.chars().next() {
            form.align = Some(if align == '-' { '<' } else { align });
            rest = &rest[1..];
        }
        if rest.starts_with('0') && rest.len() > 1 && form.align.is_none() {
            form.fill = '0';
            rest = &rest[1..];
        }
        let number = |rest: &mut &str, most: usize| -> Checked<Option<usize>> {
            let end = rest.find(|next: char| !next.is_ascii_digit()).unwrap_or(rest.len());
            let (digits, others) = rest.split_at(end);
            *rest = others;
            if digits.is_empty() {
                return Ok(None);
            }
            digits.parse().ok().filter(|number| *number <= most).map(Some).ok_or_else(wrong)
        };
        form.width = number(&mut rest, WIDEST)?.unwrap_or(0);
        if let Some(others) = rest.strip_prefix(',') {
            form.has_commas = true;
            rest = others;
        }
        if let Some(others) = rest.strip_prefix('.') {
            rest = others;
            form.digits = Some(number(&mut rest, DIGITS)?.ok_or_else(wrong)?);
        }
        let mut letters = rest.chars();
        form.kind = letters.next();
        if letters.next().is_some() { Err(wrong()) } else { Ok(form) }
    }

    fn write(&self, state: &mut State, value: Value) -> Checked<String> {
        let text = match (self.kind, value) {
            (Some('d' | 'i'), Value::Float(number)) => {
                // Without the sign of a negative zero.
                let whole = number.trunc() + 0.0;
                if !whole.is_finite() {
                    return Err(Fault::new("the number is too large for an int"));
                }
                format!("{whole:.0}")
            }
            (Some('d' | 'i'), value) => state.int_of(value, "the value")?.to_string(),
            (Some('x'), value) => hexadecimal(state.int_of(value, "the value")?, 'x'),
            (Some('X'), value) => hexadecimal(state.int_of(value, "the value")?, 'X'),
            (Some('o'), value) => hexadecimal(state.int_of(value, "the value")?, 'o'),
            (Some('c'), Value::Int(code)) => {
                let code = u32::try_from(code).ok().and_then(char::from_u32);
                code.ok_or_else(|| Fault::new("the value is no character"))?.to_string()
            }
            (Some('e' | 'E' | 'f' | 'F' | 'g' | 'G' | '%'), value) => self.number(state, value)?,
            (None, Value::Float(_)) if self.digits.is_some() => self.number(state, value)?,
            (Some('r'), value) => state.represented(value)?,
            (Some('c'), value) => match state.text_of(value, "the value")? {
                text if text.chars().count() == 1 => text.to_string(),
                _ => return Err(Fault::new("the value must be one character")),
            },
            (None | Some('s'), value) => {
                let text = state.shown(value)?;
                match self.digits {
                    Some(most) => text.chars().take(most).collect(),
                    None => text,
                }
            }
            (Some(kind), _) => return Err(Fault::new(format!("the format {kind:?} is not supported"))),
        };
        let text = if self.has_commas { with_commas(&text) } else { text };
        Ok(self.padded(text, as_float(value).is_some()))
    }

    fn number(&self, state: &State, value: Value) -> Checked<String> {
        let number = as_float(value)
            .ok_or_else(|| Fault::new(format!("the value must be a number, not {}", state.a_type(value))))?;
        let digits = self.digits.unwrap_or(6);
        Ok(match self.kind {
            Some('e' | 'E') => exponent(&format!("{number:.digits$e}")),
            Some('%') => format!("{:.digits$}%", number * 100.0),
            Some('g' | 'G') | None => float_text(number).trim_end_matches(".0").to_owned(),
            _ => format!("{number:.digits$}"),
        })
    }

    fn padded(&self, text: String, is_number: bool) -> String {
        let missing = self.width.saturating_sub(text.chars().count());
        if missing == 0 {
            return text;
        }
        let fill = |count: usize| self.fill.to_string().repeat(count);
        if self.fill == '0' && self.align.is_none() {
            let (sign, digits) = match text.strip_prefix('-') {
                Some(digits) => ("-", digits),
                None => ("", &*text),
            };
            return format!("{sign}{}{digits}", fill(missing));
        }
        match self.align.unwrap_or(if is_number { '>' } else { '<' }) {
            '<' => format!("{text}{}", fill(missing)),
            '^' => format!("{}{text}{}", fill(missing / 2), fill(missing - missing / 2)),
            _ => format!("{}{text}", fill(missing)),
        }
    }
}

fn hexadecimal(value: i128, kind: char) -> String {
    let sign = if value < 0 { "-" } else { "" };
    let value = value.unsigned_abs();
    match kind {
        'x' => format!("{sign}{value:x}"),
        'X' => format!("{sign}{value:X}"),
        _ => format!("{sign}{value:o}"),
    }
}

/// With a sign and two digits, as other languages write it.
fn exponent(text: &str) -> String {
    let Some((digits, exponent)) = text.split_once('e') else { return text.to_owned() };
    let (sign, exponent) = match exponent.strip_prefix('-') {
        Some(exponent) => ('-', exponent),
        None => ('+', exponent),
    };
    format!("{digits}e{sign}{exponent:0>2}")
}

fn with_commas(text: &str) -> String {
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    let digits = whole.trim_start_matches('-');
    let mut grouped = whole[..whole.len() - digits.len()].to_owned();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped + rest
}

/// The method `format`.
pub(super) fn format(state: &mut State, text: &str, arguments: &Arguments) -> Checked<String> {
    let mut formatted = String::new();
    let mut places = Places::default();
    let mut rest = text;
    while let Some(at) = rest.find(['{', '}']) {
        state.push(&mut formatted, &rest[..at])?;
        let (brace, after) = (&rest[at..=at], &rest[at + 1..]);
        if let Some(after) = after.strip_prefix(brace) {
            state.push(&mut formatted, brace)?;
            rest = after;
            continue;
        }
        if brace == "}" {
            return Err(Fault::new("a '}' in a format has no '{': write '}}'"));
        }
        let (field, after) =
            after.split_once('}').ok_or_else(|| Fault::new("a '{' in a format is never closed"))?;
        rest = after;
        let (field, form) = field.split_once(':').unwrap_or((field, ""));
        let (name, is_represented) = match field.split_once('!') {
            Some((name, "r")) => (name, true),
            Some((name, "s")) => (name, false),
            Some(_) => return Err(Fault::new("a conversion in a format must be !r or !s")),
            None => (field, false),
        };
        let value = argument(arguments, name, &mut places)?;
        let mut form = Form::parse(form)?;
        if is_represented {
            form.kind = Some('r');
        }
        let value = form.write(state, value)?;
        state.push(&mut formatted, &value)?;
    }
    state.push(&mut formatted, rest)?;
    Ok(formatted)
}

/// How a format names the places of its arguments: all of them by numbers, or none.
#[derive(Default)]
struct Places {
    next: usize,
    has_numbers: bool,
}

fn argument(arguments: &Arguments, name: &str, places: &mut Places) -> Checked<Value> {
    let index = match name {
        "" => {
            places.next += 1;
            Some(places.next - 1)
        }
        // A number has no sign.
        name if name.bytes().all(|byte| byte.is_ascii_digit()) => name.parse().ok(),
        _ => None,
    };
    places.has_numbers |= !name.is_empty() && index.is_some();
    if places.has_numbers && places.next > 0 {
        return Err(Fault::new("a format has fields with numbers, or without, and not both"));
    }
    let found = match index {
        Some(index) => arguments.positional.get(index).copied(),
        None => arguments.named.iter().find(|(known, _)| **known == *name).map(|(_, value)| *value),
    };
    found.ok_or_else(|| match index {
        Some(index) => Fault::new(format!("the format needs an argument {index}")),
        None => Fault::new(format!("the format needs an argument {:?}", super::shortened(name))),
    })
}

/// The operator `%`.
pub(crate) fn percent(state: &mut State, format: &str, value: Value) -> Checked<String> {
    let values = match state.heap.object(value) {
        Some(Object::Tuple(items)) => items.to_vec(),
        _ => vec![value],
    };
    let mut values = values.into_iter();
    let mut uses_names = false;
    let mut formatted = String::new();
    let mut rest = format;
    while let Some(at) = rest.find('%') {
        state.push(&mut formatted, &rest[..at])?;
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('%') {
            state.push(&mut formatted, "%")?;
            rest = after;
            continue;
        }
        let mut named = None;
        if let Some((name, after)) = rest.strip_prefix('(').and_then(|rest| rest.split_once(')')) {
            let key = Key::Text(name.into());
            let found =
                state.heap.as_dict(value).and_then(|dict| dict.entries.get(&key)).map(|entry| entry.1);
            named = Some(found.ok_or_else(|| {
                Fault::new(format!("the format needs a dict with {:?}", super::shortened(name)))
            })?);
            (uses_names, rest) = (true, after);
        }
        let end = rest.find(|next: char| next.is_alphabetic());
        let end = end.ok_or_else(|| Fault::new("the format ends after '%': write '%%'"))?;
        let length = end + rest[end..].chars().next().map_or(0, char::len_utf8);
        let form = Form::parse(&rest[..length])?;
        rest = &rest[length..];
        let value = named.or_else(|| values.next());
        let value = value.ok_or_else(|| Fault::new("the format needs more values"))?;
        let value = form.write(state, value)?;
        state.push(&mut formatted, &value)?;
    }
    state.push(&mut formatted, rest)?;
    if !uses_names && values.next().is_some() {
        return Err(Fault::new("the format has more values than it needs"));
    }
    Ok(formatted)
}
