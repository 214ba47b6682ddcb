//! The arguments of a function become its variables.

use std::sync::Arc;

use super::thread::{Frame, Thread};
use crate::{
    builtins::Arguments,
    compile::Code,
    error::{Checked, Fault},
    state::State,
    value::{Object, VALUE, Value},
};

/// What a frame takes beside its variables.
const FRAME: usize = 256;

impl Thread {
    /// Starts to run a function.
    pub(super) fn enter(
        &mut self,
        state: &mut State,
        function: Value,
        arguments: Arguments,
        is_hidden: bool,
    ) -> Checked<()> {
        let limit = state.limits.depth;
        if self.depth() >= limit {
            return Err(Fault::new(format!("calls are nested deeper than {limit}")));
        }
        let Some(Object::Function(called)) = state.heap.object(function) else {
            return Err(Fault::new(format!("{} cannot be called", state.a_type(function))));
        };
        let code = called.code.clone();
        let captured: Arc<[Value]> = called.captured.as_ref().into();
        let defaults = called.defaults.to_vec();
        let mut variables = bound(state, &code, &defaults, arguments)?;
        if code.has_cells {
            for variable in &mut variables {
                *variable = state.heap.put(Object::Cell(*variable))?;
            }
        }
        let reserved = self.uncounted() + FRAME + (captured.len() + code.slots.len()) * VALUE;
        state.meter.work(code.slots.len() + captured.len())?;
        state.heap.reserve(reserved)?;
        let base = self.stack.len();
        self.stack.extend(variables);
        self.stack.resize(base + code.slots.len(), Value::Unbound);
        self.frames.push(Frame { code, captured, next: 0, base, loops: Vec::new(), reserved, is_hidden });
        Ok(())
    }
}

/// The values of the parameters.
fn bound(state: &mut State, code: &Code, defaults: &[Value], arguments: Arguments) -> Checked<Vec<Value>> {
    let parameters = &code.parameters;
    let Arguments { mut positional, named } = arguments;
    let more = positional.split_off(parameters.positional.min(positional.len()));
    if !more.is_empty() && !parameters.has_items {
        let given = positional.len() + more.len();
        let message = format!(
            "{} takes {} positional arguments, and {given} are given",
            code.name, parameters.positional
        );
        return Err(Fault::new(message));
    }
    let count = parameters.positional + parameters.named;
    let mut values: Vec<Value> = positional;
    values.resize(count, Value::Unbound);
    let mut rest = Vec::new();
    for (name, value) in named {
        state.meter.work(1)?;
        let index = parameters.names.iter().take(count).position(|known| *known == name);
        match index.and_then(|index| values.get_mut(index)) {
            Some(slot @ Value::Unbound) => *slot = value,
            Some(_) => return Err(Fault::new(format!("{} has two arguments for {name}", code.name))),
            None if parameters.has_entries => rest.push((name, value)),
            None => return Err(Fault::new(format!("{} has no parameter {name}", code.name))),
        }
    }
    let mut defaults = defaults.iter();
    for ((value, name), has_default) in values.iter_mut().zip(&parameters.names).zip(&parameters.has_default)
    {
        let default = if *has_default { defaults.next() } else { None };
        if let Value::Unbound = value {
            *value =
                *default.ok_or_else(|| Fault::new(format!("{} needs an argument for {name}", code.name)))?;
        }
    }
    if parameters.has_items {
        values.push(state.heap.tuple(more)?);
    }
    if parameters.has_entries {
        let entries = state.heap.put(Object::Dict(Default::default()))?;
        for (name, value) in rest {
            let key = state.heap.shared_text(&name)?;
            state.set_entry(entries, key, value)?;
        }
        values.push(entries);
    }
    Ok(values)
}
