//! The functions of templates: those of Go's, and json, quote and fromJson.

use std::{borrow::Cow, cmp::Ordering};

use serde_json::Value;
use skep_mcp::tree_size;

use super::{
    compare::{is_equal, is_true, order},
    format::{go_quoted, json, kind, printf, text_of},
    value::{Budget, Val},
};

const FUNCTIONS: [&str; 22] = [
    "json", "quote", "fromJson", "and", "or", "not", "len", "index", "slice", "print", "printf", "println",
    "html", "js", "urlquery", "call", "eq", "ne", "lt", "le", "gt", "ge",
];

pub(super) fn is_function(name: &str) -> bool {
    FUNCTIONS.contains(&name)
}

/// The value of a function.
pub(super) fn call<'a>(name: &str, arguments: Vec<Val<'a>>, budget: &mut Budget) -> Result<Val<'a>, String> {
    let mut text = |text: String| -> Result<Val<'a>, String> {
        budget.take(text.len()).map_err(|error| error.to_string())?;
        Ok(Cow::Owned(Value::String(text)))
    };
    let flag = |value: bool| Ok(Cow::Owned(Value::Bool(value)));
    match (name, &arguments[..]) {
        ("json", [value]) => text(json(value)),
        ("quote", [value]) => text(go_quoted(&text_of(value))),
        ("fromJson", [value]) => {
            let Value::String(source) = &**value else { return Err(format!("{} is no text", kind(value))) };
            // The value may take a hundred times as much as the text.
            budget.take(tree_size(source)).map_err(|error| error.to_string())?;
            let parsed = serde_json::from_str(source).map_err(|error| format!("it is not JSON: {error}"))?;
            Ok(Cow::Owned(parsed))
        }
        ("and" | "or", [.., last]) => Ok(last.clone()),
        ("not", [value]) => flag(!is_true(value)),
        ("len", [value]) => {
            let length = match &**value {
                Value::String(text) => text.len(),
                Value::Array(items) => items.len(),
                Value::Object(map) => map.len(),
                other => return Err(format!("{} has no length", kind(other))),
            };
            Ok(Cow::Owned(length.into()))
        }
        ("index", [value, keys @ ..]) => keys.iter().try_fold(value.clone(), indexed),
        ("slice", [value, bounds @ ..]) if bounds.len() <= 2 => sliced(value, bounds),
        ("print", values) => text(printed(values)),
        ("println", values) => text(line(values)),
        ("printf", [format, values @ ..]) => match &**format {
            Value::String(format) => text(printf(format, values)),
            other => Err(format!("{} is no format", kind(other))),
        },
        ("html", values) => text(escaped(&printed(values), html)),
        ("js", values) => text(escaped(&printed(values), js)),
        ("urlquery", values) => text(urlquery(&printed(values))),
        ("call", _) => Err("there is no function among the data".into()),
        ("eq", [first, others @ ..]) if !others.is_empty() => {
            for other in others {
                if is_equal(first, other)? {
                    return flag(true);
                }
            }
            flag(false)
        }
        ("ne", [one, other]) => flag(!is_equal(one, other)?),
        ("lt", [one, other]) => flag(order(one, other)? == Ordering::Less),
        ("le", [one, other]) => flag(order(one, other)? != Ordering::Greater),
        ("gt", [one, other]) => flag(order(one, other)? == Ordering::Greater),
        ("ge", [one, other]) => flag(order(one, other)? != Ordering::Less),
        (_, arguments) => Err(format!("{} arguments do not fit", arguments.len())),
    }
}

/// One item of a list, or one field of an object.
fn indexed<'a>(value: Val<'a>, key: &Val<'a>) -> Result<Val<'a>, String> {
    fn item<'v>(value: &'v Value, key: &Value) -> Result<Option<&'v Value>, String> {
        match (value, key) {
            (Value::Object(map), Value::String(key)) => Ok(map.get(key)),
            (Value::Array(items), Value::Number(index)) => {
                let at = index.as_u64().and_then(|index| items.get(usize::try_from(index).ok()?));
                at.map(Some).ok_or_else(|| format!("{index} is out of range"))
            }
            (value, key) => Err(format!("{} cannot be indexed with {}", kind(value), kind(key))),
        }
    }
    Ok(match value {
        Cow::Borrowed(value) => item(value, key)?.map_or(Cow::Owned(Value::Null), Cow::Borrowed),
        Cow::Owned(value) => Cow::Owned(item(&value, key)?.cloned().unwrap_or_default()),
    })
}

/// A part of a list or of a string, whose positions are bytes.
fn sliced<'a>(value: &Value, bounds: &[Val<'a>]) -> Result<Val<'a>, String> {
    let length = match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.len(),
        other => return Err(format!("{} cannot be sliced", kind(other))),
    };
    let bound = |index: usize, default: usize| match bounds.get(index) {
        None => Ok(default),
        Some(bound) => {
            let number = bound.as_u64().and_then(|number| usize::try_from(number).ok());
            number.filter(|number| *number <= length).ok_or_else(|| format!("{bound} is out of range"))
        }
    };
    let range = bound(0, 0)?..bound(1, length)?;
    let part = match value {
        Value::String(text) => text.get(range.clone()).map(Value::from),
        Value::Array(items) => items.get(range.clone()).map(|items| Value::from(items.to_vec())),
        _ => None,
    };
    part.map(Cow::Owned).ok_or_else(|| format!("{}:{} is out of range", range.start, range.end))
}

/// Values with a space between two that are no strings.
fn printed(values: &[Val<'_>]) -> String {
    let mut text = String::new();
    for (index, value) in values.iter().enumerate() {
        if index > 0 && !value.is_string() && !values[index - 1].is_string() {
            text.push(' ');
        }
        text.push_str(&if value.is_null() { "<nil>".into() } else { text_of(value) });
    }
    text
}

fn line(values: &[Val<'_>]) -> String {
    let texts: Vec<_> =
        values.iter().map(|value| if value.is_null() { "<nil>".into() } else { text_of(value) }).collect();
    texts.join(" ") + "\n"
}

fn escaped(text: &str, escape: fn(char) -> Option<String>) -> String {
    text.chars().fold(String::new(), |mut all, c| {
        match escape(c) {
            Some(escape) => all.push_str(&escape),
            None => all.push(c),
        }
        all
    })
}

fn html(c: char) -> Option<String> {
    let escape = match c {
        '\0' => "\u{fffd}",
        '"' => "&#34;",
        '\'' => "&#39;",
        '&' => "&amp;",
        '<' => "&lt;",
        '>' => "&gt;",
        _ => return None,
    };
    Some(escape.into())
}

fn js(c: char) -> Option<String> {
    match c {
        '\\' => Some("\\\\".into()),
        '\'' => Some("\\'".into()),
        '"' => Some("\\\"".into()),
        '<' | '>' | '&' | '=' => Some(format!("\\u{:04X}", u32::from(c))),
        c if u32::from(c) < 0x20 => Some(format!("\\u{:04X}", u32::from(c))),
        _ => None,
    }
}

fn urlquery(text: &str) -> String {
    text.bytes().fold(String::new(), |mut all, byte| {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => all.push(byte.into()),
            b' ' => all.push('+'),
            _ => all.push_str(&format!("%{byte:02X}")),
        }
        all
    })
}
