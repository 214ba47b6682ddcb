//! One operation after the other.

use std::sync::Arc;

use super::thread::{Iteration, Pause, Thread};
use crate::{
    builtins::{Arguments, Outcome},
    compile::{Capture, Op},
    error::{Checked, Fault},
    state::State,
    value::{Function, Object, Value},
};

fn broken() -> Fault {
    Fault::new("the script ended unexpectedly")
}

impl Thread {
    /// Takes about this many steps, or as many as it can.
    pub(super) fn run(&mut self, state: &mut State, turn: u64) -> Checked<Pause> {
        let end = state.meter.used.saturating_add(turn);
        if let Some(function) = self.start.take()
            && let Some(paused) = self.invoke(state, function, Arguments::default())?
        {
            return Ok(paused);
        }
        loop {
            // A call of a tool is the start of this thread, and has returned.
            if self.frames.is_empty() {
                return Ok(Pause::End(self.pop()?));
            }
            if state.meter.used >= end || state.heap.should_collect() && state.meter.used + turn > end {
                return Ok(Pause::Turn);
            }
            if let Some(paused) = self.step(state)? {
                return Ok(paused);
            }
        }
    }

    fn pop(&mut self) -> Checked<Value> {
        self.stack.pop().ok_or_else(broken)
    }

    /// The topmost values, in the order in which they were pushed.
    fn pop_many(&mut self, count: u32) -> Checked<Vec<Value>> {
        let start = self.stack.len().checked_sub(count as usize).ok_or_else(broken)?;
        Ok(self.stack.split_off(start))
    }

    fn slot(&mut self, slot: u32) -> Checked<&mut Value> {
        let base = self.frames.last().ok_or_else(broken)?.base;
        self.stack.get_mut(base + slot as usize).ok_or_else(broken)
    }

    /// The cell of a variable.
    fn cell(&mut self, state: &mut State, slot: u32) -> Checked<Value> {
        let variable = self.slot(slot)?;
        if let Some(Object::Cell(_)) = state.heap.object(*variable) {
            return Ok(*variable);
        }
        *variable = state.heap.put(Object::Cell(Value::Unbound))?;
        Ok(*variable)
    }

    fn unbound(&self, slot: u32) -> Fault {
        let name = self.frames.last().and_then(|frame| frame.code.slots.get(slot as usize));
        Fault::new(format!("{} has no value yet", name.map_or("the variable", |name| name)))
    }

    fn jump(&mut self, target: u32) {
        if let Some(frame) = self.frames.last_mut() {
            frame.next = target as usize;
        }
    }

    fn step(&mut self, state: &mut State) -> Checked<Option<Pause>> {
        let frame = self.frames.last_mut().ok_or_else(broken)?;
        let op = *frame.code.ops.get(frame.next).ok_or_else(broken)?;
        frame.next += 1;
        state.meter.step(1)?;
        match op {
            Op::None => self.stack.push(Value::None),
            Op::Constant(index) => {
                self.stack.push(*state.constants.get(index as usize).ok_or_else(broken)?);
            }
            Op::Global(index) => self.stack.push(*state.globals.get(index as usize).ok_or_else(broken)?),
            Op::Local(slot) => match *self.slot(slot)? {
                Value::Unbound => return Err(self.unbound(slot)),
                value => self.stack.push(value),
            },
            Op::SetLocal(slot) => *self.slot(slot)? = self.pop()?,
            Op::Cell(slot) => {
                let cell = *self.slot(slot)?;
                match state.heap.object(cell) {
                    Some(Object::Cell(Value::Unbound)) | None => return Err(self.unbound(slot)),
                    Some(Object::Cell(value)) => self.stack.push(*value),
                    Some(_) => return Err(broken()),
                }
            }
            Op::SetCell(slot) => {
                let value = self.pop()?;
                let cell = self.cell(state, slot)?;
                state.heap.set_cell(cell, value);
            }
            Op::NewCell(slot) => *self.slot(slot)? = Value::Unbound,
            Op::Captured(index) => {
                let cell = frame.captured.get(index as usize).copied().ok_or_else(broken)?;
                match state.heap.object(cell) {
                    Some(Object::Cell(Value::Unbound)) => {
                        return Err(Fault::new("a variable of the outer function has no value yet"));
                    }
                    Some(Object::Cell(value)) => self.stack.push(*value),
                    _ => return Err(broken()),
                }
            }
            Op::Pop => drop(self.pop()?),
            Op::Repeat(count) => {
                let values = self.pop_many(count)?;
                self.stack.extend_from_slice(&values);
                self.stack.extend(values);
            }
            Op::Rotate => {
                let value = self.pop()?;
                let place = self.stack.len().checked_sub(2).ok_or_else(broken)?;
                self.stack.insert(place, value);
            }
            Op::Unary(op) => {
                let operand = self.pop()?;
                self.stack.push(state.unary(op, operand)?);
            }
            Op::Binary(op) => {
                let (right, left) = (self.pop()?, self.pop()?);
                self.stack.push(state.binary(op, left, right)?);
            }
            Op::InPlace(op) => {
                let (right, left) = (self.pop()?, self.pop()?);
                self.stack.push(state.in_place(op, left, right)?);
            }
            Op::Jump(target) => self.jump(target),
            Op::JumpIfFalse(target) => {
                let condition = self.pop()?;
                if !state.is_true(condition) {
                    self.jump(target);
                }
            }
            Op::JumpIfFalseOrPop(target) | Op::JumpIfTrueOrPop(target) => {
                let jumps_if = matches!(op, Op::JumpIfTrueOrPop(_));
                let value = self.stack.last().copied().ok_or_else(broken)?;
                if state.is_true(value) == jumps_if {
                    self.jump(target);
                } else {
                    self.pop()?;
                }
            }
            Op::List(count) => {
                let items = self.pop_many(count)?;
                self.stack.push(state.heap.list(items)?);
            }
            Op::Tuple(count) => {
                let items = self.pop_many(count)?;
                self.stack.push(state.heap.tuple(items)?);
            }
            Op::Dict(count) => {
                let entries = self.pop_many(count.saturating_mul(2))?;
                let dict = state.heap.put(Object::Dict(Default::default()))?;
                for (count, entry) in (1..).zip(entries.chunks_exact(2)) {
                    state.set_entry(dict, entry[0], entry[1])?;
                    if state.heap.as_dict(dict).is_some_and(|dict| dict.entries.len() < count) {
                        let key = state.represented(entry[0])?;
                        return Err(Fault::new(format!(
                            "the dict has the key {} twice",
                            crate::builtins::shortened(&key)
                        )));
                    }
                }
                self.stack.push(dict);
            }
            Op::Append(slot) => {
                let item = self.pop()?;
                let list = *self.slot(slot)?;
                state.heap.changing_list(list, 1)?.push(item);
            }
            Op::Insert(slot) => {
                let (value, key) = (self.pop()?, self.pop()?);
                let dict = *self.slot(slot)?;
                state.set_entry(dict, key, value)?;
            }
            Op::Attribute(name) => {
                let name = frame.code.names.get(name as usize).cloned().ok_or_else(broken)?;
                let of = self.pop()?;
                self.stack.push(state.attribute(of, &name)?);
            }
            Op::Index => {
                let (index, of) = (self.pop()?, self.pop()?);
                self.stack.push(state.index(of, index)?);
            }
            Op::SetIndex => {
                let (index, of, value) = (self.pop()?, self.pop()?, self.pop()?);
                state.set_index(of, index, value)?;
            }
            Op::Slice => {
                let (step, to, from, of) = (self.pop()?, self.pop()?, self.pop()?, self.pop()?);
                self.stack.push(state.slice(of, [from, to, step])?);
            }
            Op::Unpack(count) => {
                let value = self.pop()?;
                let items = state.items(value)?;
                if items.len() != count as usize {
                    let message = format!("{count} values are expected, and there are {}", items.len());
                    return Err(Fault::new(message));
                }
                self.stack.extend(items.into_iter().rev());
            }
            Op::Iterate => {
                let of = self.pop()?;
                if !state.is_iterable(of) {
                    // For its message.
                    state.items(of)?;
                }
                state.heap.count_loop(of, true);
                self.frames.last_mut().ok_or_else(broken)?.loops.push(Iteration { of, next: 0 });
            }
            Op::Next(end) => {
                let iteration = frame.loops.last_mut().ok_or_else(broken)?;
                match state.item(iteration.of, iteration.next) {
                    Some(item) => {
                        iteration.next += 1;
                        self.stack.push(item);
                    }
                    None => {
                        state.heap.count_loop(iteration.of, false);
                        frame.loops.pop();
                        frame.next = end as usize;
                    }
                }
            }
            Op::Stop => {
                if let Some(iteration) = frame.loops.pop() {
                    state.heap.count_loop(iteration.of, false);
                }
            }
            Op::Function(index, defaults) => self.make_function(state, index, defaults)?,
            Op::Call(index) => return self.call(state, index),
            Op::Return => return self.return_value(state),
        }
        Ok(None)
    }

    fn make_function(&mut self, state: &mut State, index: u32, defaults: u32) -> Checked<()> {
        let defaults = self.pop_many(defaults)?;
        let frame = self.frames.last().ok_or_else(broken)?;
        let code = frame.code.functions.get(index as usize).cloned().ok_or_else(broken)?;
        let outer = frame.captured.clone();
        let mut captured = Vec::with_capacity(code.captures.len());
        for capture in &code.captures {
            captured.push(match *capture {
                Capture::Local(slot) => self.cell(state, slot)?,
                Capture::Captured(index) => outer.get(index as usize).copied().ok_or_else(broken)?,
            });
        }
        let function = Function { code, defaults: defaults.into(), captured: captured.into() };
        self.stack.push(state.heap.put(Object::Function(function))?);
        Ok(())
    }

    fn return_value(&mut self, state: &mut State) -> Checked<Option<Pause>> {
        let value = self.pop()?;
        let frame = self.frames.pop().ok_or_else(broken)?;
        for iteration in frame.loops {
            state.heap.count_loop(iteration.of, false);
        }
        state.heap.release(frame.reserved);
        self.stack.truncate(frame.base);
        if self.frames.is_empty() {
            return Ok(Some(Pause::End(value)));
        }
        self.stack.push(value);
        Ok(None)
    }

    fn call(&mut self, state: &mut State, index: u32) -> Checked<Option<Pause>> {
        let code = self.frames.last().ok_or_else(broken)?.code.clone();
        let form = code.calls.get(index as usize).ok_or_else(broken)?;
        let entries = if form.has_entries { Some(self.pop()?) } else { None };
        let items = if form.has_items { Some(self.pop()?) } else { None };
        let named = self.pop_many(u32::try_from(form.names.len()).unwrap_or(u32::MAX))?;
        let mut positional = self.pop_many(u32::try_from(form.positional).unwrap_or(u32::MAX))?;
        let function = self.pop()?;
        let mut named: Vec<(Arc<str>, Value)> = form.names.iter().cloned().zip(named).collect();
        if let Some(items) = items {
            positional.extend(state.items(items)?);
        }
        if let Some(entries) = entries {
            if state.heap.as_dict(entries).is_none() {
                return Err(Fault::new(format!("** needs a dict, not {}", state.a_type(entries))));
            }
            let length = state.length(entries).unwrap_or_default();
            state.meter.work(length)?;
            state.heap.check_values(length)?;
            for index in 0..length {
                let Some((key, value)) = state.entry(entries, index) else { break };
                let name = state.text_of(key, "each key of a ** argument")?;
                named.push((name, value));
            }
            check_unique(&named, form.names.len())?;
        }
        self.invoke(state, function, Arguments { positional, named })
    }

    /// Calls a function. The result is pushed, at once or later.
    fn invoke(&mut self, state: &mut State, function: Value, arguments: Arguments) -> Checked<Option<Pause>> {
        let outcome = match function {
            Value::Builtin(builtin) => state.call_builtin(builtin, arguments)?,
            Value::Tool(tool) => Outcome::Tool(tool, arguments),
            _ => match state.heap.object(function) {
                Some(Object::Function(_)) => {
                    self.enter(state, function, arguments, false)?;
                    return Ok(None);
                }
                Some(Object::Method(of, name)) => {
                    let (of, name) = (*of, name.clone());
                    Outcome::Value(state.call_method(of, &name, &arguments)?)
                }
                _ => return Err(Fault::new(format!("{} cannot be called", state.a_type(function)))),
            },
        };
        match outcome {
            Outcome::Value(value) => self.stack.push(value),
            Outcome::Tool(tool, arguments) => return Ok(Some(Pause::Tool(tool, arguments))),
            Outcome::Parallel(functions) => return Ok(Some(Pause::Parallel(functions))),
            Outcome::Prelude(prelude, positional) => {
                let function = state.prelude.get(prelude as usize).copied().ok_or_else(broken)?;
                self.enter(state, function, Arguments { positional, named: Vec::new() }, true)?;
            }
        }
        Ok(None)
    }
}

/// Checks that no name of a ** argument is also given in another way.
fn check_unique(named: &[(Arc<str>, Value)], given: usize) -> Checked<()> {
    let (given, more) = named.split_at(given.min(named.len()));
    match more.iter().find(|(name, _)| given.iter().any(|(other, _)| other == name)) {
        Some((name, _)) => Err(Fault::new(format!("the argument {name} is given twice"))),
        None => Ok(()),
    }
}
