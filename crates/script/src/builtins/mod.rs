//! Functions and methods that every script can use.

mod arguments;
mod dicts;
mod format;
mod functions;
mod lists;
mod sets;
mod strings;

use std::sync::Arc;

pub(crate) use arguments::Arguments;
pub(crate) use format::percent;
pub(crate) use functions::shortened;
pub(crate) use sets::combined;

use crate::{
    error::{Checked, Fault},
    state::State,
    value::{Object, Value},
};

/// What a call of something that is no function of the script leads to.
pub(crate) enum Outcome {
    Value(Value),
    /// A call of a tool, with its arguments.
    Tool(u32, Arguments),
    /// Functions that are called side by side.
    Parallel(Vec<Value>),
    /// A call of a function of the prelude.
    Prelude(Prelude, Vec<Value>),
}

/// Functions that builtins need in order to call functions of the script, in the order of [`PRELUDE`].
#[derive(Clone, Copy, Debug)]
pub(crate) enum Prelude {
    Sorted,
    Best,
}

/// The source of these functions.
pub(crate) const PRELUDE: &str = "\
def sorted(items, key, reverse): return _sorted(items, [key(item) for item in items], reverse)
def best(items, key, is_largest): return _best(items, [key(item) for item in items], is_largest)
";

macro_rules! builtins {
    ($($name:ident = $text:literal),* $(,)?) => {
        /// A function that every script can use.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Builtin { $($name),* }

        impl Builtin {
            const ALL: &[Self] = &[$(Self::$name),*];

            pub(crate) fn name(self) -> &'static str {
                match self { $(Self::$name => $text),* }
            }
        }
    };
}

builtins! {
    Abs = "abs", All = "all", Any = "any", Bool = "bool", Dict = "dict", Dir = "dir", Enumerate = "enumerate",
    Fail = "fail", Float = "float", Getattr = "getattr", Hasattr = "hasattr", Int = "int", Json = "json",
    Len = "len", List = "list", Max = "max", Min = "min", Print = "print", Range = "range", Repr = "repr",
    Reversed = "reversed", Set = "set", Sorted = "sorted", Str = "str", Sum = "sum", Tuple = "tuple",
    Type = "type", Zip = "zip",
    CallTool = "call_tool", Parallel = "parallel",
    JsonDecode = "json.decode", JsonEncode = "json.encode", SortedByKeys = "_sorted", BestByKeys = "_best",
}

impl Builtin {
    /// Those that scripts call by their names.
    pub(crate) fn named() -> impl Iterator<Item = Self> {
        Self::ALL.iter().copied().filter(|builtin| !builtin.is_internal())
    }

    /// Those that no value of the caller may hide.
    pub(crate) fn reserved() -> [Self; 2] {
        [Self::CallTool, Self::Parallel]
    }

    fn is_internal(self) -> bool {
        matches!(self, Self::JsonDecode | Self::JsonEncode | Self::SortedByKeys | Self::BestByKeys)
    }
}

impl State {
    pub(crate) fn attribute(&mut self, of: Value, name: &Arc<str>) -> Checked<Value> {
        let found = self.find_attribute(of, name)?;
        found.ok_or_else(|| {
            let names = self.attributes(of);
            let hint = match (self.heap.as_dict(of), names) {
                (Some(dict), _) if dict.entries.contains_key(&crate::value::Key::Text(name.clone())) => {
                    format!(": use [\"{name}\"]")
                }
                (_, []) => String::new(),
                (_, names) => format!(": it has {}", names.join(", ")),
            };
            Fault::new(format!("{} has no attribute {name}{hint}", self.a_type(of)))
        })
    }

    fn find_attribute(&mut self, of: Value, name: &Arc<str>) -> Checked<Option<Value>> {
        if !self.attributes(of).contains(&&**name) {
            return Ok(None);
        }
        Ok(Some(match (of, &**name) {
            (Value::Builtin(Builtin::Json), "decode") => Value::Builtin(Builtin::JsonDecode),
            (Value::Builtin(Builtin::Json), _) => Value::Builtin(Builtin::JsonEncode),
            _ => self.heap.put(Object::Method(of, name.clone()))?,
        }))
    }

    /// The names of the methods of a value.
    fn attributes(&self, of: Value) -> &'static [&'static str] {
        if let Value::Builtin(Builtin::Json) = of {
            return &["decode", "encode"];
        }
        match self.heap.object(of) {
            Some(Object::Text(_)) => strings::METHODS,
            Some(Object::List(_)) => lists::METHODS,
            Some(Object::Dict(_)) => dicts::METHODS,
            Some(Object::Set(_)) => sets::METHODS,
            _ => &[],
        }
    }

    /// Calls a method of a value.
    pub(crate) fn call_method(&mut self, of: Value, name: &str, arguments: &Arguments) -> Checked<Value> {
        match self.heap.object(of) {
            Some(Object::Text(text)) => {
                let text = text.clone();
                self.meter.bytes(text.len())?;
                strings::call(self, &text, name, arguments)
            }
            Some(Object::List(_)) => lists::call(self, of, name, arguments),
            Some(Object::Dict(_)) => dicts::call(self, of, name, arguments),
            Some(Object::Set(_)) => sets::call(self, of, name, arguments),
            _ => Err(Fault::new(format!("{} has no method {name}", self.a_type(of)))),
        }
    }
}
