//! Methods of dicts.

use super::Arguments;
use crate::{
    error::{Checked, Fault},
    state::State,
    value::Value,
};

pub(super) const METHODS: &[&str] =
    &["clear", "get", "items", "keys", "pop", "popitem", "setdefault", "update", "values"];

pub(super) fn call(state: &mut State, dict: Value, name: &str, arguments: &Arguments) -> Checked<Value> {
    let length = state.length(dict).unwrap_or_default();
    match name {
        "clear" => {
            arguments.none(name)?;
            state.heap.changing_dict(dict, None)?.entries.clear();
            Ok(Value::None)
        }
        "get" | "pop" | "setdefault" => {
            let [key, default] = arguments.bound(name, ["key", "default"], 1)?;
            let key = key.unwrap_or(Value::None);
            let hashed = state.key(key)?;
            let found =
                state.heap.as_dict(dict).and_then(|dict| dict.entries.get(&hashed)).map(|entry| entry.1);
            match (name, found, default) {
                ("get", found, default) => Ok(found.or(default).unwrap_or(Value::None)),
                ("setdefault", Some(found), _) => Ok(found),
                ("setdefault", None, default) => {
                    let value = default.unwrap_or(Value::None);
                    state.set_entry(dict, key, value)?;
                    Ok(value)
                }
                (_, Some(found), _) => {
                    state.meter.work(length)?;
                    state.heap.changing_dict(dict, None)?.entries.shift_remove(&hashed);
                    Ok(found)
                }
                (_, None, Some(default)) => Ok(default),
                (_, None, None) => Err(Fault::new("the dict has no such key")),
            }
        }
        "popitem" => {
            arguments.none(name)?;
            let (key, value) = state.entry(dict, 0).ok_or_else(|| Fault::new("the dict is empty"))?;
            state.meter.work(length)?;
            state.heap.changing_dict(dict, None)?.entries.shift_remove_index(0);
            state.heap.tuple(vec![key, value])
        }
        "update" => {
            let arguments =
                Arguments { positional: arguments.positional.clone(), named: arguments.named.clone() };
            update(state, dict, arguments)?;
            Ok(Value::None)
        }
        _ => {
            arguments.none(name)?;
            state.meter.work(length)?;
            state.heap.check_values(length)?;
            let mut all = Vec::new();
            for index in 0..length {
                let Some((key, value)) = state.entry(dict, index) else { break };
                all.push(match name {
                    "keys" => key,
                    "values" => value,
                    _ => state.heap.tuple(vec![key, value])?,
                });
            }
            state.heap.list(all)
        }
    }
}

/// Adds the entries of a dict or of pairs, and those that are named.
pub(super) fn update(state: &mut State, dict: Value, arguments: Arguments) -> Checked<()> {
    let Arguments { positional, named } = arguments;
    let [from] = Arguments { positional, named: Vec::new() }.bound("dict", ["pairs"], 0)?;
    match from {
        None => {}
        Some(from) if state.heap.as_dict(from).is_some() => state.add_entries(dict, from)?,
        Some(from) => {
            for pair in state.items(from)? {
                let pair = state.items(pair)?;
                let [key, value] = pair[..] else {
                    return Err(Fault::new("a dict is made of pairs of a key and a value"));
                };
                state.set_entry(dict, key, value)?;
            }
        }
    }
    for (name, value) in named {
        let key = state.heap.shared_text(&name)?;
        state.set_entry(dict, key, value)?;
    }
    Ok(())
}
