//! Methods of lists.

use super::Arguments;
use crate::{
    error::{Checked, Fault},
    state::State,
    value::Value,
};

pub(super) const METHODS: &[&str] = &["append", "clear", "extend", "index", "insert", "pop", "remove"];

pub(super) fn call(state: &mut State, list: Value, name: &str, arguments: &Arguments) -> Checked<Value> {
    let length = state.length(list).unwrap_or_default();
    match name {
        "append" => {
            let item = arguments.one(name, "item")?;
            state.heap.changing_list(list, 1)?.push(item);
        }
        "clear" => {
            arguments.none(name)?;
            state.heap.changing_list(list, 0)?.clear();
        }
        "extend" => {
            let items = state.items(arguments.one(name, "items")?)?;
            state.heap.changing_list(list, items.len())?.extend(items);
        }
        "index" => {
            let [item, start, end] = arguments.bound(name, ["item", "start", "end"], 1)?;
            let start = bound(state, start, length, 0)?;
            let end = bound(state, end, length, length)?;
            for index in start..end {
                let found = state.item(list, index).unwrap_or(Value::None);
                if state.is_equal(found, item.unwrap_or(Value::None))? {
                    return Ok(Value::Int(i128::try_from(index).unwrap_or(i128::MAX)));
                }
            }
            return Err(Fault::new("the item is not in the list"));
        }
        "insert" => {
            let [index, item] = arguments.bound(name, ["index", "item"], 2)?;
            let index = bound(state, index, length, 0)?;
            state.meter.work(length)?;
            let items = state.heap.changing_list(list, 1)?;
            items.insert(index.min(items.len()), item.unwrap_or(Value::None));
        }
        "pop" => {
            let [index] = arguments.bound(name, ["index"], 0)?;
            let index = index.map_or(Ok(-1), |index| state.int_of(index, "index"))?;
            let all = i128::try_from(length).unwrap_or(i128::MAX);
            let index = if index < 0 { index.saturating_add(all) } else { index };
            let index = usize::try_from(index).ok().filter(|index| *index < length);
            let index = index.ok_or_else(|| Fault::new("the index is out of range"))?;
            state.meter.work(length - index)?;
            return Ok(state.heap.changing_list(list, 0)?.remove(index));
        }
        _ => {
            let item = arguments.one(name, "item")?;
            for index in 0..length {
                let found = state.item(list, index).unwrap_or(Value::None);
                if state.is_equal(found, item)? {
                    state.meter.work(length - index)?;
                    state.heap.changing_list(list, 0)?.remove(index);
                    return Ok(Value::None);
                }
            }
            return Err(Fault::new("the item is not in the list"));
        }
    }
    Ok(Value::None)
}

/// A place in something of this length, where negative ones count from the end.
pub(super) fn bound(state: &State, value: Option<Value>, length: usize, default: usize) -> Checked<usize> {
    let Some(value) = value.filter(|value| !matches!(value, Value::None)) else { return Ok(default) };
    let index = state.int_of(value, "an index")?;
    let all = i128::try_from(length).unwrap_or(i128::MAX);
    let index = if index < 0 { index.saturating_add(all) } else { index };
    Ok(usize::try_from(index.clamp(0, all)).unwrap_or(length))
}
