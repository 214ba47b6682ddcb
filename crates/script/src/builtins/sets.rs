//! Sets.

use super::Arguments;
use crate::{
    error::{Checked, Fault},
    state::State,
    syntax::BinaryOp,
    value::{Object, Value},
};

pub(super) const METHODS: &[&str] =
    &["add", "clear", "difference", "discard", "intersection", "pop", "remove", "union"];

pub(super) fn set(state: &mut State, items: Vec<Value>) -> Checked<Value> {
    let set = state.heap.put(Object::Set(Default::default()))?;
    for item in items {
        state.set_entry(set, item, Value::None)?;
    }
    Ok(set)
}

pub(super) fn call(state: &mut State, of: Value, name: &str, arguments: &Arguments) -> Checked<Value> {
    let op = match name {
        "union" => BinaryOp::Or,
        "intersection" => BinaryOp::And,
        "difference" => BinaryOp::Subtract,
        _ => return change(state, of, name, arguments),
    };
    let items = state.items(arguments.one(name, "items")?)?;
    let other = set(state, items)?;
    combined(state, op, of, other)
}

fn change(state: &mut State, of: Value, name: &str, arguments: &Arguments) -> Checked<Value> {
    match name {
        "add" => {
            let item = arguments.one(name, "item")?;
            state.set_entry(of, item, Value::None)?;
            Ok(Value::None)
        }
        "clear" => {
            arguments.none(name)?;
            state.heap.changing_dict(of, None)?.entries.clear();
            Ok(Value::None)
        }
        "pop" => {
            arguments.none(name)?;
            let first = state.item(of, 0).ok_or_else(|| Fault::new("the set is empty"))?;
            state.meter.work(state.length(of).unwrap_or_default())?;
            state.heap.changing_dict(of, None)?.entries.shift_remove_index(0);
            Ok(first)
        }
        _ => {
            let key = state.key(arguments.one(name, "item")?)?;
            state.meter.work(state.length(of).unwrap_or_default())?;
            let removed = state.heap.changing_dict(of, None)?.entries.shift_remove(&key);
            match removed {
                None if name == "remove" => Err(Fault::new("the item is not in the set")),
                _ => Ok(Value::None),
            }
        }
    }
}

/// The union, intersection or difference of two sets.
pub(crate) fn combined(state: &mut State, op: BinaryOp, left: Value, right: Value) -> Checked<Value> {
    let mut kept = Vec::new();
    for (one, other, side) in [(left, right, 0), (right, left, 1)] {
        for item in state.items(one)? {
            let key = state.key(item)?;
            let is_in_other = match state.heap.object(other) {
                Some(Object::Set(other)) => other.entries.contains_key(&key),
                _ => false,
            };
            let is_kept = match (op, side) {
                (BinaryOp::Or, _) => true,
                (BinaryOp::And, 0) => is_in_other,
                (BinaryOp::Subtract, 0) | (BinaryOp::Xor, _) => !is_in_other,
                _ => false,
            };
            if is_kept {
                state.heap.check_values(kept.len() + 1)?;
                kept.push(item);
            }
        }
    }
    set(state, kept)
}
