//! What all threads of a script share.

use std::sync::Arc;

use crate::{
    error::{Checked, Fault},
    heap::Heap,
    limits::Limits,
    meter::Meter,
    value::{Object, Value},
};

/// How many bytes a piece of a text counts as, beside its own.
const PIECE: usize = 48;

/// What all threads of a script share, and the meter of the one that runs.
pub(crate) struct State {
    pub(crate) heap: Heap,
    pub(crate) meter: Meter,
    pub(crate) limits: Limits,
    pub(crate) logs: Logs,
    /// The names of the tools that it can call.
    pub(crate) tools: Arc<[String]>,
    pub(crate) constants: Vec<Value>,
    pub(crate) globals: Vec<Value>,
    /// Functions that builtins call with functions of the script.
    pub(crate) prelude: Vec<Value>,
}

/// What a script has printed.
#[derive(Debug, Default)]
pub(crate) struct Logs {
    pub(crate) text: String,
    is_full: bool,
}

impl Logs {
    /// Adds a line, as long as there is room.
    pub(crate) fn add(&mut self, line: &str, limit: usize) {
        if self.is_full {
            return;
        }
        if self.text.len() + line.len() + 1 > limit {
            self.is_full = true;
            self.text.push_str("[more was printed than is kept]\n");
            return;
        }
        self.text.push_str(line);
        self.text.push('\n');
    }
}

impl State {
    /// Adds to a text that is being made.
    pub(crate) fn push(&mut self, text: &mut String, more: &str) -> Checked<()> {
        self.meter.bytes(more.len() + PIECE)?;
        self.heap.check(text.len() + more.len())?;
        text.push_str(more);
        Ok(())
    }

    /// The name of the type of a value.
    pub(crate) fn type_of(&self, value: Value) -> &'static str {
        match value {
            Value::Unbound | Value::None => "NoneType",
            Value::Bool(_) => "bool",
            Value::Int(_) => "int",
            Value::Float(_) => "float",
            Value::Builtin(_) | Value::Tool(_) => "builtin_function_or_method",
            Value::Object(_) => match self.heap.object(value) {
                Some(Object::Text(_)) => "string",
                Some(Object::List(_)) => "list",
                Some(Object::Tuple(_)) => "tuple",
                Some(Object::Dict(_)) => "dict",
                Some(Object::Set(_)) => "set",
                Some(Object::Range(_)) => "range",
                Some(Object::Function(_)) => "function",
                Some(Object::Method(..)) => "builtin_function_or_method",
                Some(Object::Cell(_)) | None => "NoneType",
            },
        }
    }

    /// The type of a value with its article, for messages.
    pub(crate) fn a_type(&self, value: Value) -> String {
        let type_ = self.type_of(value);
        let article = if type_.starts_with('i') { "an" } else { "a" };
        format!("{article} {type_}")
    }

    pub(crate) fn is_true(&self, value: Value) -> bool {
        match value {
            Value::Unbound | Value::None => false,
            Value::Bool(value) => value,
            Value::Int(value) => value != 0,
            Value::Float(value) => value != 0.0,
            Value::Builtin(_) | Value::Tool(_) => true,
            Value::Object(_) => match self.heap.as_text(value) {
                Some(text) => !text.is_empty(),
                None => self.length(value) != Some(0),
            },
        }
    }

    /// How many items a value has, if it has any.
    pub(crate) fn length(&self, value: Value) -> Option<usize> {
        match self.heap.object(value)? {
            Object::Text(text) => Some(text.chars().count()),
            Object::List(list) => Some(list.items.len()),
            Object::Tuple(items) => Some(items.len()),
            Object::Dict(dict) | Object::Set(dict) => Some(dict.entries.len()),
            Object::Range(range) => Some(range.length),
            Object::Function(_) | Object::Method(..) | Object::Cell(_) => None,
        }
    }

    /// Whether loops can iterate over a value.
    pub(crate) fn is_iterable(&self, value: Value) -> bool {
        self.length(value).is_some() && self.heap.as_text(value).is_none()
    }

    /// The item of something iterable at a place.
    pub(crate) fn item(&self, of: Value, index: usize) -> Option<Value> {
        match self.heap.object(of)? {
            Object::List(list) => list.items.get(index).copied(),
            Object::Tuple(items) => items.get(index).copied(),
            Object::Dict(dict) | Object::Set(dict) => dict.entries.get_index(index).map(|(_, (key, _))| *key),
            Object::Range(range) => (index < range.length).then(|| range.item(index)),
            _ => None,
        }
    }

    /// All items of something iterable.
    pub(crate) fn items(&mut self, of: Value) -> Checked<Vec<Value>> {
        let length = match self.is_iterable(of) {
            true => self.length(of).unwrap_or_default(),
            false if self.heap.as_text(of).is_some() => {
                return Err(Fault::new("a string cannot be iterated over: use its elems() or split()"));
            }
            false => return Err(Fault::new(format!("{} cannot be iterated over", self.a_type(of)))),
        };
        self.heap.check_values(length)?;
        self.meter.work(length)?;
        Ok((0..length).filter_map(|index| self.item(of, index)).collect())
    }

    pub(crate) fn text_of(&self, value: Value, what: &str) -> Checked<Arc<str>> {
        let text = self.heap.as_text(value).cloned();
        text.ok_or_else(|| Fault::new(format!("{what} must be a string, not {}", self.a_type(value))))
    }

    pub(crate) fn int_of(&self, value: Value, what: &str) -> Checked<i128> {
        match value {
            Value::Int(value) => Ok(value),
            _ => Err(Fault::new(format!("{what} must be an int, not {}", self.a_type(value)))),
        }
    }
}
