//! Texts, quoted where they would be taken for something else.

use std::fmt::Write;

/// Words that older readers of YAML take for true and false.
const OLD_BOOLEANS: [&str; 16] =
    ["y", "Y", "yes", "Yes", "YES", "on", "On", "ON", "n", "N", "no", "No", "NO", "off", "Off", "OFF"];
/// Words that are no text.
const WORDS: [&str; 23] = [
    "", "~", "null", "Null", "NULL", "true", "True", "TRUE", "false", "False", "FALSE", ".nan", ".NaN",
    ".NAN", ".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF", "-.inf", "-.Inf", "-.INF",
];

/// A text as the key of an entry.
pub(super) fn key(text: &str) -> String {
    if text.contains('\n') { double_quoted(text) } else { on_one_line(text) }
}

/// A text as a value. One of several lines has them at this depth.
pub(super) fn value(text: &str, depth: usize) -> String {
    let shape = Shape::of(text);
    match text.contains('\n') {
        true if shape.block_allowed => block(text, depth),
        true => double_quoted(text),
        false => on_one_line(text),
    }
}

fn on_one_line(text: &str) -> String {
    let shape = Shape::of(text);
    if !is_text(text) {
        double_quoted(text)
    } else if shape.plain_allowed {
        text.into()
    } else if shape.single_quotes_allowed {
        format!("'{}'", text.replace('\'', "''"))
    } else {
        double_quoted(text)
    }
}

fn double_quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        // Writing to a String cannot fail.
        let _ = match c {
            '"' => write!(quoted, "\\\""),
            '\\' => write!(quoted, "\\\\"),
            '\0' => write!(quoted, "\\0"),
            '\x07' => write!(quoted, "\\a"),
            '\x08' => write!(quoted, "\\b"),
            '\t' => write!(quoted, "\\t"),
            '\n' => write!(quoted, "\\n"),
            '\x0b' => write!(quoted, "\\v"),
            '\x0c' => write!(quoted, "\\f"),
            '\r' => write!(quoted, "\\r"),
            '\x1b' => write!(quoted, "\\e"),
            '\u{85}' => write!(quoted, "\\N"),
            '\u{2028}' => write!(quoted, "\\L"),
            '\u{2029}' => write!(quoted, "\\P"),
            c if is_printable(c) => write!(quoted, "{c}"),
            c if c <= '\u{ff}' => write!(quoted, "\\x{:02X}", u32::from(c)),
            c if c <= '\u{ffff}' => write!(quoted, "\\u{:04X}", u32::from(c)),
            c => write!(quoted, "\\U{:08X}", u32::from(c)),
        };
    }
    quoted.push('"');
    quoted
}

/// Lines as they are, below the one that announces them.
fn block(text: &str, depth: usize) -> String {
    let mut block = String::from("|");
    // How the end is to be read: without a break, with one, or with all that there are.
    if !text.ends_with('\n') {
        block.push('-');
    } else if text.ends_with("\n\n") {
        block.push('+');
    }
    let lines = text.strip_suffix('\n').unwrap_or(text);
    for line in lines.split('\n') {
        block.push('\n');
        if !line.is_empty() {
            (0..depth).for_each(|_| block.push(' '));
            block.push_str(line);
        }
    }
    block
}

/// In which ways a text can be written.
struct Shape {
    plain_allowed: bool,
    single_quotes_allowed: bool,
    block_allowed: bool,
}

impl Shape {
    fn of(text: &str) -> Self {
        let mut indicators = text.starts_with("---") || text.starts_with("...");
        let (mut special, mut tab, mut breaks, mut space_then_break, mut break_then_space) =
            (false, false, false, false, false);
        let mut before: Option<char> = None;
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            let blank_after = chars.peek().is_none_or(|next| matches!(next, ' ' | '\t'));
            indicators |= match (before, c) {
                (
                    None,
                    '#' | ',' | '[' | ']' | '{' | '}' | '&' | '*' | '!' | '|' | '>' | '\'' | '"' | '%' | '@'
                    | '`',
                ) => true,
                (None, '?' | '-') | (_, ':') => blank_after,
                (Some(before), '#') => matches!(before, ' ' | '\t' | '\n'),
                _ => false,
            };
            tab |= c == '\t';
            special |= c != '\t' && !is_printable(c) && c != '\n';
            breaks |= is_break(c);
            space_then_break |= before == Some(' ') && is_break(c);
            break_then_space |= before.is_some_and(is_break) && c == ' ';
            before = Some(c);
        }
        let at_edge = |c: char| c == ' ' || is_break(c);
        let at_edges = text.starts_with(at_edge) || text.ends_with(at_edge);
        let unquotable = break_then_space || space_then_break || tab || special;
        Self {
            plain_allowed: !indicators && !at_edges && !unquotable && !breaks,
            single_quotes_allowed: !unquotable && !breaks,
            // Where its first line is blank or indented, readers would need to be told by how much.
            block_allowed: !text.starts_with([' ', '\n'])
                && !text.ends_with(' ')
                && !space_then_break
                && !special,
        }
    }
}

fn is_break(c: char) -> bool {
    matches!(c, '\r' | '\n' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// What Go writes as it is. It escapes everything beyond the basic plane.
fn is_printable(c: char) -> bool {
    matches!(c, ' '..='~' | '\u{a0}'..='\u{fffd}') && c != '\u{feff}'
}

/// Whether a reader takes it for a text, if it is not quoted.
fn is_text(text: &str) -> bool {
    !(WORDS.contains(&text)
        || OLD_BOOLEANS.contains(&text)
        || is_number(text)
        || is_base_60(text)
        || is_timestamp(text))
}

fn is_number(text: &str) -> bool {
    if !text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.')) {
        return false;
    }
    let plain = text.replace('_', "");
    let unsigned = plain.strip_prefix(['+', '-']).unwrap_or(&plain);
    let lower = unsigned.to_ascii_lowercase();
    let based = [("0x", 16), ("0o", 8), ("0b", 2)].into_iter().any(|(prefix, base)| {
        lower.strip_prefix(prefix).is_some_and(|digits| u64::from_str_radix(digits, base).is_ok())
    });
    based || is_float(unsigned)
}

/// Digits, with a point among them or before them, and an exponent perhaps.
fn is_float(text: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent.strip_prefix(['+', '-']).unwrap_or(exponent))),
        None => (text, None),
    };
    let mantissa = match mantissa.split_once('.') {
        Some(("", fraction)) => digits(fraction),
        Some((whole, fraction)) => digits(whole) && (fraction.is_empty() || digits(fraction)),
        None => digits(mantissa),
    };
    mantissa && exponent.is_none_or(digits)
}

/// `1:30`, which older readers take for ninety.
fn is_base_60(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let mut parts = unsigned.split(':');
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_');
    let first =
        parts.next().is_some_and(|first| first.starts_with(|c: char| c.is_ascii_digit()) && digits(first));
    let rest: Vec<&str> = parts.collect();
    let sixtieth = |part: &str| {
        (1..=2).contains(&part.len()) && digits(part) && part.parse::<u8>().is_ok_and(|number| number < 60)
    };
    let Some((last, middle)) = rest.split_last() else { return false };
    let last =
        last.split_once('.').map_or(*last, |(whole, fraction)| if digits(fraction) { whole } else { "" });
    first && middle.iter().all(|part| sixtieth(part)) && sixtieth(last)
}

/// `2025-11-05`, with a time after it perhaps.
fn is_timestamp(text: &str) -> bool {
    let (date, time) = match text.find(['T', 't', ' ']) {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    };
    let within = |part: &str, length: std::ops::RangeInclusive<usize>, limit: u8| {
        length.contains(&part.len())
            && part.bytes().all(|byte| byte.is_ascii_digit())
            && part.parse::<u16>().is_ok_and(|number| limit == 0 || number <= u16::from(limit))
    };
    let mut parts = date.split('-');
    let (year, month, day) = (parts.next(), parts.next(), parts.next());
    let is_date = year.is_some_and(|year| within(year, 4..=4, 0))
        && month.is_some_and(|month| within(month, 1..=2, 12) && !month.trim_start_matches('0').is_empty())
        && day.is_some_and(|day| within(day, 1..=2, 31) && !day.trim_start_matches('0').is_empty())
        && parts.next().is_none();
    let is_time = |time: &str| {
        let time = time.strip_suffix('Z').unwrap_or(time);
        let time = time.find(['+', '-']).map_or(time, |at| &time[..at]);
        let mut parts = time.split(':');
        let (hour, minute, second) = (parts.next(), parts.next(), parts.next());
        let second = second.map(|second| second.split_once('.').map_or(second, |(whole, _)| whole));
        hour.is_some_and(|hour| within(hour, 1..=2, 23))
            && minute.is_some_and(|minute| within(minute, 1..=2, 59))
            && second.is_some_and(|second| within(second, 1..=2, 59))
            && parts.next().is_none()
    };
    is_date && time.is_none_or(is_time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_quoted_where_it_would_be_taken_for_something_else() {
        for (text, written) in [
            ("plain text", "plain text"),
            ("https://as.example.com:8080/a?b=c#d", "https://as.example.com:8080/a?b=c#d"),
            ("permit(principal, action, resource);", "permit(principal, action, resource);"),
            ("redis:6379", "redis:6379"),
            ("1m30s", "1m30s"),
            ("{workload}_", "'{workload}_'"),
            ("[]", "'[]'"),
            ("{{.params.q}}", "'{{.params.q}}'"),
            ("it's: x", "'it''s: x'"),
            ("a #b", "'a #b'"),
            ("- a", "'- a'"),
            ("-a", "-a"),
            (" a", "' a'"),
            ("a:", "'a:'"),
            ("", "\"\""),
            ("0.05", "\"0.05\""),
            ("1_000", "\"1_000\""),
            ("0x1F", "\"0x1F\""),
            ("1e3", "\"1e3\""),
            (".5", "\".5\""),
            ("1.2.3", "1.2.3"),
            ("true", "\"true\""),
            ("yes", "\"yes\""),
            ("null", "\"null\""),
            ("10:30", "\"10:30\""),
            ("10:75", "10:75"),
            ("2025-11-05", "\"2025-11-05\""),
            ("2025-11-05T01:02:03Z", "\"2025-11-05T01:02:03Z\""),
            ("2025-13-05", "2025-13-05"),
            ("1:2:3.5", "\"1:2:3.5\""),
            ("089", "\"089\""),
            ("1.", "\"1.\""),
            ("1e", "1e"),
            ("?x", "?x"),
            ("a? b", "a? b"),
            ("'q'", "'''q'''"),
            ("---a", "'---a'"),
            ("a,b]", "a,b]"),
            ("a\rb", "\"a\\rb\""),
            ("a\tb", "\"a\\tb\""),
            ("größe", "größe"),
            ("\u{1f41d}", "\"\\U0001F41D\""),
            ("a\u{1}\"\\", "\"a\\x01\\\"\\\\\""),
        ] {
            assert_eq!(value(text, 4), written, "{text:?}");
        }
    }

    #[test]
    fn lines_that_end_in_a_space_are_quoted() {
        assert_eq!(value("a \nb", 4), "\"a \\nb\"");
        assert_eq!(key("a\nb"), "\"a\\nb\"");
    }
}
