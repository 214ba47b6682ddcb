//! Values of a script.

use std::sync::Arc;

use indexmap::IndexMap;

use crate::{builtins::Builtin, compile::Code};

/// A value. Copies of one that has parts share them.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Value {
    /// What a variable has before it is assigned to.
    Unbound,
    None,
    Bool(bool),
    Int(i128),
    Float(f64),
    Builtin(Builtin),
    /// A tool, by its place among the tools of the script.
    Tool(u32),
    Object(Id),
}

/// Where an object is in the heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Id(pub(super) u32);

/// A value that has parts.
#[derive(Debug)]
pub(crate) enum Object {
    Text(Arc<str>),
    List(List),
    Tuple(Box<[Value]>),
    Dict(Dict),
    Set(Dict),
    Range(Range),
    Function(Function),
    /// A method, of this object.
    Method(Value, Arc<str>),
    /// A variable that several functions share.
    Cell(Value),
}

#[derive(Debug, Default)]
pub(crate) struct List {
    pub(crate) items: Vec<Value>,
    /// How many loops iterate over it. It cannot be changed meanwhile.
    pub(crate) loops: u32,
}

/// Entries in the order in which they were added. Each key is there as the value that it was, too.
#[derive(Debug, Default)]
pub(crate) struct Dict {
    pub(crate) entries: IndexMap<Key, (Value, Value)>,
    pub(crate) loops: u32,
}

/// What a value is compared by as a key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Key {
    None,
    Bool(bool),
    Int(i128),
    /// The bits of a number that is not whole.
    Float(u64),
    Text(Arc<str>),
    Tuple(Box<[Key]>),
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Range {
    pub(crate) start: i128,
    /// As it was given: it may lie beyond the last item.
    pub(crate) stop: i128,
    pub(crate) step: i128,
    pub(crate) length: usize,
}

impl Range {
    pub(crate) fn item(self, index: usize) -> Value {
        let offset = i128::try_from(index).ok().and_then(|index| index.checked_mul(self.step));
        Value::Int(offset.and_then(|offset| self.start.checked_add(offset)).unwrap_or(self.start))
    }

    /// Whether both have the same items.
    pub(crate) fn is_same(self, other: Self) -> bool {
        self.length == other.length
            && (self.length == 0 || self.start == other.start)
            && (self.length < 2 || self.step == other.step)
    }
}

#[derive(Debug)]
pub(crate) struct Function {
    pub(crate) code: Arc<Code>,
    /// The values of its last parameters that have one.
    pub(crate) defaults: Box<[Value]>,
    /// The cells of outer functions that it uses.
    pub(crate) captured: Box<[Value]>,
}

/// What an object takes beside its parts, what a value does, and what an entry of a dict does.
const OBJECT: usize = 96;
pub(crate) const VALUE: usize = 48;
pub(crate) const ENTRY: usize = 192;

impl Object {
    /// About how many bytes it takes.
    pub(crate) fn size(&self) -> usize {
        OBJECT
            + match self {
                Self::Text(text) => text.len(),
                Self::List(list) => list.items.len() * VALUE,
                Self::Tuple(items) => items.len() * VALUE,
                Self::Dict(dict) | Self::Set(dict) => dict.size(),
                Self::Function(function) => (function.defaults.len() + function.captured.len()) * VALUE,
                Self::Range(_) | Self::Method(..) | Self::Cell(_) => 0,
            }
    }

    /// Calls a function with each of its parts.
    pub(crate) fn each_part(&self, mut part: impl FnMut(Value)) {
        match self {
            Self::Text(_) | Self::Range(_) => {}
            Self::List(list) => list.items.iter().copied().for_each(part),
            Self::Tuple(items) => items.iter().copied().for_each(part),
            Self::Dict(dict) | Self::Set(dict) => dict.entries.values().for_each(|(key, value)| {
                part(*key);
                part(*value);
            }),
            Self::Function(function) => {
                function.defaults.iter().chain(&function.captured).copied().for_each(part);
            }
            Self::Method(value, _) | Self::Cell(value) => part(*value),
        }
    }
}

impl Dict {
    fn size(&self) -> usize {
        self.entries.iter().map(|(key, _)| ENTRY + key.size()).sum()
    }
}

impl Key {
    /// What it takes beside the entry. A text is shared with the value.
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::Tuple(parts) => parts.iter().map(|part| VALUE + part.size()).sum(),
            _ => 0,
        }
    }
}
