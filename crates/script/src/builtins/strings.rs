//! Methods of strings.

use std::sync::Arc;

use super::{Arguments, format::format, lists::bound};
use crate::{
    error::{Checked, Fault},
    state::State,
    value::Value,
};

pub(super) const METHODS: &[&str] = &[
    "capitalize",
    "count",
    "elems",
    "endswith",
    "find",
    "format",
    "index",
    "isalnum",
    "isalpha",
    "isdigit",
    "islower",
    "isspace",
    "istitle",
    "isupper",
    "join",
    "lower",
    "lstrip",
    "partition",
    "removeprefix",
    "removesuffix",
    "replace",
    "rfind",
    "rindex",
    "rpartition",
    "rsplit",
    "rstrip",
    "split",
    "splitlines",
    "startswith",
    "strip",
    "title",
    "upper",
];

pub(super) fn call(state: &mut State, text: &Arc<str>, name: &str, arguments: &Arguments) -> Checked<Value> {
    match name {
        "count" | "find" | "index" | "rfind" | "rindex" => search(state, text, name, arguments),
        "startswith" | "endswith" => {
            let affix = arguments.one(name, "affix")?;
            let affixes = match state.heap.as_items(affix) {
                Some(items) => items.to_vec(),
                None => vec![affix],
            };
            for affix in affixes {
                state.meter.work(1)?;
                let affix = state.text_of(affix, "the argument")?;
                let is_there =
                    if name == "startswith" { text.starts_with(&*affix) } else { text.ends_with(&*affix) };
                if is_there {
                    return Ok(Value::Bool(true));
                }
            }
            Ok(Value::Bool(false))
        }
        "join" => {
            let mut joined = String::new();
            for (index, item) in state.items(arguments.one(name, "items")?)?.into_iter().enumerate() {
                let item = state.text_of(item, "each item that is joined")?;
                if index > 0 {
                    state.push(&mut joined, text)?;
                }
                state.push(&mut joined, &item)?;
            }
            state.heap.text(&joined)
        }
        "format" => {
            let formatted = format(state, text, arguments)?;
            state.heap.text(&formatted)
        }
        "replace" => replace(state, text, arguments),
        "split" | "rsplit" => split(state, text, name, arguments),
        "partition" | "rpartition" => {
            let separator = separator(state, arguments.one(name, "sep")?)?;
            let found = if name == "partition" { text.find(&*separator) } else { text.rfind(&*separator) };
            let parts = match (found, name) {
                (Some(at), _) => [&text[..at], &*separator, &text[at + separator.len()..]],
                (None, "partition") => [&**text, "", ""],
                (None, _) => ["", "", &**text],
            };
            let parts = parts.iter().map(|part| state.heap.text(part)).collect::<Result<_, _>>()?;
            state.heap.tuple(parts)
        }
        "splitlines" => {
            let [keeps_ends] = arguments.bound(name, ["keepends"], 0)?;
            let keeps_ends = keeps_ends.is_some_and(|keeps| state.is_true(keeps));
            check_parts(state, text.matches('\n').count())?;
            let lines: Vec<&str> =
                if keeps_ends { text.split_inclusive('\n').collect() } else { text.lines().collect() };
            texts(state, &lines)
        }
        "strip" | "lstrip" | "rstrip" => {
            let [characters] = arguments.bound(name, ["chars"], 0)?;
            let characters = match characters.filter(|value| !matches!(value, Value::None)) {
                Some(characters) => Some(state.text_of(characters, "the argument")?),
                None => None,
            };
            // Each character of the text may be compared with each of these.
            let compared = characters.as_ref().map_or(1, |all| all.len()).saturating_mul(text.len());
            state.meter.bytes(compared)?;
            let is_stripped = |next: char| match &characters {
                Some(characters) => characters.contains(next),
                None => next.is_whitespace(),
            };
            let stripped = match name {
                "strip" => text.trim_matches(is_stripped),
                "lstrip" => text.trim_start_matches(is_stripped),
                _ => text.trim_end_matches(is_stripped),
            };
            state.heap.text(stripped)
        }
        "removeprefix" | "removesuffix" => {
            let affix = arguments.one(name, "affix")?;
            let affix = state.text_of(affix, "the argument")?;
            let rest = match name {
                "removeprefix" => text.strip_prefix(&*affix),
                _ => text.strip_suffix(&*affix),
            };
            state.heap.text(rest.unwrap_or(text))
        }
        "elems" => {
            arguments.none(name)?;
            state.heap.check_values(text.len().saturating_mul(3))?;
            let mut elements = Vec::new();
            for next in text.chars() {
                state.meter.work(1)?;
                elements.push(state.heap.text(next.encode_utf8(&mut [0; 4]))?);
            }
            state.heap.list(elements)
        }
        "capitalize" | "lower" | "upper" | "title" => {
            arguments.none(name)?;
            // Few characters become more than three others.
            state.heap.check(text.len().saturating_mul(3))?;
            let changed = match name {
                "lower" => text.to_lowercase(),
                "upper" => text.to_uppercase(),
                _ => titled(text, name == "title"),
            };
            state.heap.text(&changed)
        }
        _ => {
            arguments.none(name)?;
            Ok(Value::Bool(is(text, name)))
        }
    }
}

/// Checks that there is room for so many parts of a text, and one more.
fn check_parts(state: &mut State, count: usize) -> Checked<()> {
    state.heap.check_values(count.saturating_mul(3))?;
    state.meter.work(count)
}

fn texts(state: &mut State, parts: &[&str]) -> Checked<Value> {
    let parts = parts.iter().map(|part| state.heap.text(part)).collect::<Result<_, _>>()?;
    state.heap.list(parts)
}

fn separator(state: &State, value: Value) -> Checked<Arc<str>> {
    let separator = state.text_of(value, "the separator")?;
    if separator.is_empty() { Err(Fault::new("the separator must not be empty")) } else { Ok(separator) }
}

fn is(text: &str, name: &str) -> bool {
    let has_cased = text.chars().any(|next| next.is_lowercase() || next.is_uppercase());
    match name {
        "isalnum" => !text.is_empty() && text.chars().all(char::is_alphanumeric),
        "isalpha" => !text.is_empty() && text.chars().all(char::is_alphabetic),
        "isdigit" => !text.is_empty() && text.chars().all(|next| next.is_ascii_digit()),
        "isspace" => !text.is_empty() && text.chars().all(char::is_whitespace),
        "islower" => has_cased && !text.chars().any(char::is_uppercase),
        "isupper" => has_cased && !text.chars().any(char::is_lowercase),
        _ => has_cased && titled(text, true) == text,
    }
}

/// With the first letter of the text, or of each word, in upper case, and all others in lower case.
fn titled(text: &str, each_word: bool) -> String {
    let mut starts = true;
    let mut titled = String::with_capacity(text.len());
    for next in text.chars() {
        if starts && next.is_alphabetic() {
            titled.extend(next.to_uppercase());
        } else {
            titled.extend(next.to_lowercase());
        }
        starts = if each_word { !next.is_alphabetic() } else { false };
    }
    titled
}

/// Places count characters, not bytes.
fn search(state: &mut State, text: &str, name: &str, arguments: &Arguments) -> Checked<Value> {
    let [part, start, end] = arguments.bound(name, ["sub", "start", "end"], 1)?;
    let part = state.text_of(part.unwrap_or(Value::None), "what is searched")?;
    let (mut first, mut from, mut to) = (0, 0, text.len());
    if start.is_some() || end.is_some() {
        state.meter.bytes(text.len().saturating_mul(2))?;
        let length = text.chars().count();
        first = bound(state, start, length, 0)?;
        let byte = |place: usize| text.char_indices().nth(place).map_or(text.len(), |(byte, _)| byte);
        (from, to) = (byte(first), byte(bound(state, end, length, length)?));
    }
    let within = text.get(from..to).unwrap_or_default();
    if name == "count" {
        let count = if part.is_empty() { within.chars().count() + 1 } else { within.matches(&*part).count() };
        return Ok(Value::Int(i128::try_from(count).unwrap_or(i128::MAX)));
    }
    let found = if name.starts_with('r') { within.rfind(&*part) } else { within.find(&*part) };
    match found.filter(|_| from <= to) {
        Some(found) => {
            let place = first + within[..found].chars().count();
            Ok(Value::Int(i128::try_from(place).unwrap_or(i128::MAX)))
        }
        None if name.ends_with("index") => Err(Fault::new("the string does not have what is searched")),
        None => Ok(Value::Int(-1)),
    }
}

fn replace(state: &mut State, text: &str, arguments: &Arguments) -> Checked<Value> {
    let [old, new, count] = arguments.bound("replace", ["old", "new", "count"], 2)?;
    let old = state.text_of(old.unwrap_or(Value::None), "what is replaced")?;
    let new = state.text_of(new.unwrap_or(Value::None), "what replaces it")?;
    let count = count.map_or(Ok(-1), |count| state.int_of(count, "count"))?;
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    let places = if old.is_empty() { text.len() + 1 } else { text.len() / old.len() };
    let times = if new.len() > old.len() { text.matches(&*old).take(count.min(places)).count() } else { 0 };
    let size = text.len().saturating_add(times.saturating_mul(new.len()));
    state.heap.check(size)?;
    state.meter.bytes(size)?;
    state.heap.text(&text.replacen(&*old, &new, count))
}

fn split(state: &mut State, text: &str, name: &str, arguments: &Arguments) -> Checked<Value> {
    let [by, most] = arguments.bound(name, ["sep", "maxsplit"], 0)?;
    let most = most.map_or(Ok(-1), |most| state.int_of(most, "maxsplit"))?;
    let most = usize::try_from(most).map_or(usize::MAX, |most| most.saturating_add(1));
    let from_end = name == "rsplit";
    let mut parts: Vec<&str> = match by.filter(|by| !matches!(by, Value::None)) {
        Some(by) => {
            let by = separator(state, by)?;
            check_parts(state, text.matches(&*by).count().min(most))?;
            if from_end { text.rsplitn(most, &*by).collect() } else { text.splitn(most, &*by).collect() }
        }
        None if most == usize::MAX => {
            check_parts(state, text.split_whitespace().count())?;
            let words: Vec<&str> = text.split_whitespace().collect();
            if from_end { words.into_iter().rev().collect() } else { words }
        }
        None => {
            check_parts(state, text.split_whitespace().count().min(most))?;
            words(text, most, from_end)
        }
    };
    if from_end {
        parts.reverse();
    }
    texts(state, &parts)
}

/// At most this many words, of which the last has the rest, as it is.
fn words<'a>(text: &'a str, most: usize, from_end: bool) -> Vec<&'a str> {
    let mut words = Vec::new();
    let trimmed = |rest: &'a str| if from_end { rest.trim_end() } else { rest.trim_start() };
    let mut rest = trimmed(text);
    while !rest.is_empty() && words.len() + 1 < most {
        let at = if from_end { rest.rfind(char::is_whitespace) } else { rest.find(char::is_whitespace) };
        let Some(at) = at else { break };
        let (before, after) = rest.split_at(at);
        let (word, others) = if from_end { (after, before) } else { (before, after) };
        words.push(word.trim());
        rest = trimmed(others);
    }
    if !rest.is_empty() {
        words.push(rest);
    }
    words
}
