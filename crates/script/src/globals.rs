//! The names that a script can use without defining them.

use std::{collections::HashMap, sync::Arc};

use serde_json::{Map, Value as Json};

use crate::{
    builtins::{Builtin, PRELUDE, Prelude},
    compile::{Constant, program},
    error::{Checked, Fault},
    state::State,
    syntax::{is_identifier, parse},
    value::{Function, Object, Value},
};

/// The name under which a script has all its data.
const DATA: &str = "data";

/// Names of values that cannot be assigned to.
const CONSTANTS: [&str; 3] = ["None", "True", "False"];

/// The name of a tool as a function: other characters than letters, digits and `_` become `_`. None where scripts have something of
/// their own by this name, or it is no name: such a tool is called by call_tool only.
pub fn identifier(tool: &str) -> Option<String> {
    let kept = |next: char| if next == '_' || next.is_ascii_alphanumeric() { next } else { '_' };
    let name: String = tool.chars().map(kept).collect();
    let name = if name.starts_with(|first: char| first.is_ascii_digit()) { format!("_{name}") } else { name };
    let is_reserved =
        name == DATA || CONSTANTS.contains(&&*name) || Builtin::named().any(|builtin| builtin.name() == name);
    (!is_reserved && is_identifier(&name)).then_some(name)
}

/// Names, and their places among the values.
pub(crate) type Names = HashMap<Arc<str>, u32>;

impl State {
    fn define(&mut self, names: &mut Names, name: &str, value: Value) {
        names.insert(name.into(), u32::try_from(self.globals.len()).unwrap_or(u32::MAX));
        self.globals.push(value);
    }

    /// Defines everything that a script can use.
    pub(crate) fn define_all(&mut self, data: &Map<String, Json>) -> Checked<Names> {
        let mut names = Names::new();
        for (name, value) in
            [("None", Value::None), ("True", Value::Bool(true)), ("False", Value::Bool(false))]
        {
            self.define(&mut names, name, value);
        }
        for builtin in Builtin::named() {
            self.define(&mut names, builtin.name(), Value::Builtin(builtin));
        }
        let mut taken: HashMap<String, Option<u32>> = HashMap::new();
        let tools = self.tools.clone();
        for (index, tool) in (0..).zip(tools.iter()) {
            let Some(name) = identifier(tool) else { continue };
            let is_exact = name == *tool;
            // A tool that has just this name has it. Several that do not have to be called by name.
            match taken.get_mut(&name) {
                Some(other) if is_exact => *other = Some(index),
                Some(Some(other)) if tools.get(*other as usize) == Some(&name) => {}
                Some(other) => *other = None,
                None => drop(taken.insert(name, Some(index))),
            }
        }
        for (name, tool) in &taken {
            if let Some(tool) = *tool {
                self.define(&mut names, name, Value::Tool(tool));
            }
        }
        let reserved = Builtin::reserved().map(Builtin::name);
        for (name, json) in data {
            if taken.contains_key(name) || reserved.contains(&&**name) {
                return Err(Fault::new(format!(
                    "data.{name}: there is a tool or function of this name: rename it"
                )));
            }
            if !CONSTANTS.contains(&&**name) && is_identifier(name) {
                let value = self.value_of(json)?;
                self.define(&mut names, name, value);
            }
        }
        if !data.contains_key(DATA) {
            let all = self.value_of(&Json::Object(data.clone()))?;
            self.define(&mut names, DATA, all);
        }
        Ok(names)
    }

    /// Adds the functions that builtins need.
    pub(crate) fn define_prelude(&mut self) -> Checked<()> {
        let mut names = Names::new();
        for builtin in [Builtin::SortedByKeys, Builtin::BestByKeys] {
            self.define(&mut names, builtin.name(), Value::Builtin(builtin));
        }
        let compiled = parse(PRELUDE).and_then(|statements| program(&statements, &names));
        let compiled = compiled.map_err(|error| Fault::new(error.message))?;
        for prelude in [Prelude::Sorted, Prelude::Best] {
            let code = compiled.main.functions.get(prelude as usize).cloned();
            let code = code.ok_or_else(|| Fault::new("a function is missing"))?;
            let function = Function { code, defaults: [].into(), captured: [].into() };
            let function = self.heap.put(Object::Function(function))?;
            self.prelude.push(function);
        }
        Ok(())
    }

    pub(crate) fn load_constants(&mut self, constants: &[Constant]) -> Checked<()> {
        for constant in constants {
            let value = match constant {
                Constant::Int(value) => Value::Int(*value),
                Constant::Float(value) => Value::Float(*value),
                Constant::Text(text) => self.heap.shared_text(text)?,
            };
            self.constants.push(value);
        }
        Ok(())
    }
}
