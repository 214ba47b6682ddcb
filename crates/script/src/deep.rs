//! Operations on values and all their parts. Values can contain themselves, or share parts so that they are endless in
//! effect: the depth is limited, and each part is counted.

use std::{cmp::Ordering, sync::Arc};

use crate::{
    error::{Checked, Fault},
    state::State,
    value::{Key, Object, Value},
};

/// How deep values may be nested.
pub(crate) const DEPTH: usize = 64;

pub(crate) fn too_deep() -> Fault {
    Fault::new(format!("values are nested deeper than {DEPTH}"))
}

/// What two objects that may be equal are compared by.
enum Comparable {
    Decided(bool),
    /// The items of both, of which there are so many.
    Items(usize),
    /// The entries of both.
    Entries(usize),
}

impl State {
    pub(crate) fn is_equal(&mut self, one: Value, other: Value) -> Checked<bool> {
        self.equal(one, other, DEPTH)
    }

    fn equal(&mut self, one: Value, other: Value, depth: usize) -> Checked<bool> {
        self.meter.work(1)?;
        let depth = depth.checked_sub(1).ok_or_else(too_deep)?;
        match self.comparable(one, other)? {
            Comparable::Decided(is_equal) => Ok(is_equal),
            Comparable::Items(length) => {
                for index in 0..length {
                    let (Some(one), Some(other)) = (self.item(one, index), self.item(other, index)) else {
                        return Ok(false);
                    };
                    if !self.equal(one, other, depth)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Comparable::Entries(length) => {
                for index in 0..length {
                    let Some((one, other)) = self.same_entry(one, other, index) else { return Ok(false) };
                    if !self.equal(one, other, depth)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
        }
    }

    fn comparable(&mut self, one: Value, other: Value) -> Checked<Comparable> {
        let is_equal = match (one, other) {
            (Value::None, Value::None) => true,
            (Value::Bool(one), Value::Bool(other)) => one == other,
            (Value::Int(_) | Value::Float(_), Value::Int(_) | Value::Float(_)) => {
                numbers(one, other) == Some(Ordering::Equal)
            }
            (Value::Builtin(one), Value::Builtin(other)) => one == other,
            (Value::Tool(one), Value::Tool(other)) => one == other,
            (Value::Object(one), Value::Object(other)) if one == other => true,
            _ => match (self.heap.object(one), self.heap.object(other)) {
                (Some(Object::Text(one)), Some(Object::Text(other))) => {
                    let (is_equal, length) = (one == other, one.len());
                    self.meter.bytes(length)?;
                    is_equal
                }
                (Some(Object::List(one)), Some(Object::List(other)))
                    if one.items.len() == other.items.len() =>
                {
                    return Ok(Comparable::Items(one.items.len()));
                }
                (Some(Object::Tuple(one)), Some(Object::Tuple(other))) if one.len() == other.len() => {
                    return Ok(Comparable::Items(one.len()));
                }
                (Some(Object::Range(one)), Some(Object::Range(other))) => one.is_same(*other),
                (Some(Object::Dict(one)), Some(Object::Dict(other)))
                | (Some(Object::Set(one)), Some(Object::Set(other)))
                    if one.entries.len() == other.entries.len() =>
                {
                    return Ok(Comparable::Entries(one.entries.len()));
                }
                _ => false,
            },
        };
        Ok(Comparable::Decided(is_equal))
    }

    /// The values of an entry of one dict, and of the same key in the other.
    fn same_entry(&self, one: Value, other: Value, index: usize) -> Option<(Value, Value)> {
        let (Object::Dict(one) | Object::Set(one)) = self.heap.object(one)? else { return None };
        let (Object::Dict(other) | Object::Set(other)) = self.heap.object(other)? else { return None };
        let (key, (_, value)) = one.entries.get_index(index)?;
        other.entries.get(key).map(|(_, same)| (*value, *same))
    }

    /// The order of two values.
    pub(crate) fn compare(&mut self, one: Value, other: Value) -> Checked<Ordering> {
        self.order(one, other, DEPTH)
    }

    fn order(&mut self, one: Value, other: Value, depth: usize) -> Checked<Ordering> {
        self.meter.work(1)?;
        let depth = depth.checked_sub(1).ok_or_else(too_deep)?;
        if let (Value::Bool(one), Value::Bool(other)) = (one, other) {
            return Ok(one.cmp(&other));
        }
        if let Some(order) = numbers(one, other) {
            return Ok(order);
        }
        let lengths = match (self.heap.object(one), self.heap.object(other)) {
            (Some(Object::Text(one)), Some(Object::Text(other))) => {
                let (order, length) = (one.cmp(other), one.len().min(other.len()));
                self.meter.bytes(length)?;
                return Ok(order);
            }
            (Some(Object::List(one)), Some(Object::List(other))) => (one.items.len(), other.items.len()),
            (Some(Object::Tuple(one)), Some(Object::Tuple(other))) => (one.len(), other.len()),
            _ => {
                let (one, other) = (self.a_type(one), self.a_type(other));
                return Err(Fault::new(format!("{one} and {other} have no order")));
            }
        };
        for index in 0..lengths.0.min(lengths.1) {
            let (Some(one), Some(other)) = (self.item(one, index), self.item(other, index)) else { break };
            let order = self.order(one, other, depth)?;
            if order != Ordering::Equal {
                return Ok(order);
            }
        }
        Ok(lengths.0.cmp(&lengths.1))
    }

    /// What a value is as a key of a dict.
    pub(crate) fn key(&mut self, value: Value) -> Checked<Key> {
        self.key_within(value, DEPTH)
    }

    fn key_within(&mut self, value: Value, depth: usize) -> Checked<Key> {
        self.meter.work(1)?;
        let depth = depth.checked_sub(1).ok_or_else(too_deep)?;
        Ok(match value {
            Value::None => Key::None,
            Value::Bool(value) => Key::Bool(value),
            Value::Int(value) => Key::Int(value),
            Value::Float(value) => match whole(value) {
                Some(whole) => Key::Int(whole),
                None => Key::Float(value.to_bits()),
            },
            _ => match self.heap.object(value) {
                Some(Object::Text(text)) => {
                    let text: Arc<str> = text.clone();
                    self.meter.bytes(text.len())?;
                    Key::Text(text)
                }
                Some(Object::Tuple(items)) => {
                    let length = items.len();
                    self.heap.check_values(length)?;
                    let mut parts = Vec::new();
                    for index in 0..length {
                        let part = self.item(value, index).unwrap_or(Value::None);
                        let part = self.key_within(part, depth)?;
                        self.heap.check(parts.len() * crate::value::VALUE + part.size())?;
                        parts.push(part);
                    }
                    Key::Tuple(parts.into())
                }
                _ => return Err(Fault::new(format!("{} cannot be a key", self.a_type(value)))),
            },
        })
    }
}

/// A number that is whole, as an integer.
fn whole(value: f64) -> Option<i128> {
    // Beyond this, not every integer is a number.
    let is_whole = value.trunc() == value && value.abs() < 1e30;
    is_whole.then_some(value as i128)
}

/// The order of two numbers. Those that are none come last.
pub(crate) fn numbers(one: Value, other: Value) -> Option<Ordering> {
    let floats = |one: f64, other: f64| match (one.is_nan(), other.is_nan()) {
        (false, false) => one.partial_cmp(&other),
        (is_nan, other_is) => Some(is_nan.cmp(&other_is)),
    };
    match (one, other) {
        (Value::Int(one), Value::Int(other)) => Some(one.cmp(&other)),
        (Value::Float(one), Value::Float(other)) => floats(one, other),
        (Value::Int(one), Value::Float(other)) => match whole(other) {
            Some(other) => Some(one.cmp(&other)),
            None => floats(one as f64, other),
        },
        (Value::Float(_), Value::Int(_)) => numbers(other, one).map(Ordering::reverse),
        _ => None,
    }
}
