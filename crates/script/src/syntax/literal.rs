//! Numbers and strings in the source.

use super::token::Kind;

/// The number at the start of a text, and its length.
pub(super) fn number(text: &str) -> Result<(Kind, usize), &'static str> {
    const TOO_LARGE: &str = "the number is too large: integers have 128 bits";
    const MALFORMED: &str = "the number is malformed";
    let digits = |text: &str, radix: u32| text.find(|next: char| !next.is_digit(radix)).unwrap_or(text.len());
    let lower = text.get(..2).unwrap_or_default().to_ascii_lowercase();
    for (prefix, radix) in [("0x", 16), ("0o", 8), ("0b", 2)] {
        if lower == prefix {
            let length = digits(&text[2..], radix);
            ends(&text[2 + length..])?;
            let value = match length {
                0 => return Err(MALFORMED),
                _ => i128::from_str_radix(&text[2..2 + length], radix).map_err(|_| TOO_LARGE)?,
            };
            return Ok((Kind::Int(value), 2 + length));
        }
    }
    let mut length = digits(text, 10);
    let mut is_float = false;
    if text[length..].starts_with('.') {
        is_float = true;
        length += 1;
        length += digits(&text[length..], 10);
    }
    if text[length..].starts_with(['e', 'E']) {
        let sign = usize::from(text[length + 1..].starts_with(['+', '-']));
        let exponent = digits(&text[length + 1 + sign..], 10);
        if exponent == 0 {
            return Err(MALFORMED);
        }
        is_float = true;
        length += 1 + sign + exponent;
    }
    ends(&text[length..])?;
    let spelled = &text[..length];
    if is_float {
        return spelled.parse().map(|value| (Kind::Float(value), length)).map_err(|_| MALFORMED);
    }
    if spelled.len() > 1 && spelled.starts_with('0') && spelled.bytes().any(|digit| digit != b'0') {
        return Err("an integer must not start with 0: octal numbers start with 0o");
    }
    spelled.parse().map(|value| (Kind::Int(value), length)).map_err(|_| TOO_LARGE)
}

/// A number must not run into a name.
fn ends(rest: &str) -> Result<(), &'static str> {
    let runs_on = rest.starts_with(|next: char| next == '_' || next.is_alphanumeric());
    if runs_on { Err("the number runs into a name") } else { Ok(()) }
}

/// The string at the start of a text, which starts with its quote, and its length.
pub(super) fn text(text: &str, is_raw: bool) -> Result<(String, usize), &'static str> {
    let one = &text[..1];
    let three = [one; 3].concat();
    let is_long = text.starts_with(&three);
    let quote = if is_long { &*three } else { one };
    let mut value = String::new();
    let mut at = quote.len();
    loop {
        let rest = &text[at..];
        if rest.starts_with(quote) {
            return Ok((value, at + quote.len()));
        }
        let Some(next) = rest.chars().next() else { return Err("the string is never closed") };
        match next {
            '\n' if !is_long => return Err("the string is not closed in its line: use three quotes"),
            '\r' if rest.starts_with("\r\n") => at += 1,
            '\\' if is_raw => {
                // A quote after it does not close the string, and both stay.
                value.push('\\');
                at += 1;
                if let Some(after) = text[at..].chars().next().filter(|after| *after != '\n' || is_long) {
                    value.push(after);
                    at += after.len_utf8();
                }
            }
            '\\' => at += escape(&rest[1..], &mut value)? + 1,
            next => {
                value.push(next);
                at += next.len_utf8();
            }
        }
    }
}

/// Adds what an escape means. Returns its length after the backslash.
fn escape(rest: &str, value: &mut String) -> Result<usize, &'static str> {
    let Some(kind) = rest.chars().next() else { return Err("the string is never closed") };
    let plain = match kind {
        'n' => '\n',
        't' => '\t',
        'r' => '\r',
        'a' => '\u{7}',
        'b' => '\u{8}',
        'f' => '\u{c}',
        'v' => '\u{b}',
        '\\' | '\'' | '"' => kind,
        '\n' => return Ok(1),
        '\r' if rest.starts_with("\r\n") => return Ok(2),
        'x' => return coded(rest, 2, 16, value),
        'u' => return coded(rest, 4, 16, value),
        'U' => return coded(rest, 8, 16, value),
        '0'..='7' => {
            let length = rest.bytes().take(3).take_while(|digit| matches!(digit, b'0'..=b'7')).count();
            let code = u32::from_str_radix(&rest[..length], 8).ok().and_then(char::from_u32);
            value.push(code.ok_or(CODE)?);
            return Ok(length);
        }
        _ => return Err("unknown escape in a string: write \\\\ for a backslash"),
    };
    value.push(plain);
    Ok(kind.len_utf8())
}

const CODE: &str = "the escape is no character";

fn coded(rest: &str, digits: usize, radix: u32, value: &mut String) -> Result<usize, &'static str> {
    let code = rest.get(1..1 + digits).ok_or(CODE)?;
    let code = code.bytes().all(|digit| digit.is_ascii_hexdigit()).then_some(code).ok_or(CODE)?;
    let code = u32::from_str_radix(code, radix).ok().and_then(char::from_u32);
    value.push(code.ok_or(CODE)?);
    Ok(1 + digits)
}
