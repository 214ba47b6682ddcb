//! Expressions.

use std::sync::Arc;

use super::{Arguments, Capture, Compiler, Constant, Op, ordered};
use crate::{
    error::Located,
    syntax::{Argument, Call, Clause, Comprehension, Expr, ExprKind, Function},
};

impl Compiler<'_> {
    /// Leaves the value on the stack.
    pub(super) fn expr(&mut self, expr: &Expr) -> Result<(), Located> {
        let at = expr.at;
        match &expr.kind {
            ExprKind::Name(name) => self.load(name, at)?,
            ExprKind::Int(value) => self.constant(Constant::Int(*value), at),
            ExprKind::Float(value) => self.constant(Constant::Float(*value), at),
            ExprKind::Text(text) => self.constant(Constant::Text(text.clone()), at),
            ExprKind::List(items) => {
                self.all(items)?;
                self.emit(Op::List(count(items.len())), at);
            }
            ExprKind::Tuple(items) => {
                self.all(items)?;
                self.emit(Op::Tuple(count(items.len())), at);
            }
            ExprKind::Dict(entries) => {
                for (key, value) in entries {
                    self.expr(key)?;
                    self.expr(value)?;
                }
                self.emit(Op::Dict(count(entries.len())), at);
            }
            ExprKind::Comprehension(comprehension) => self.comprehension(comprehension, at)?,
            ExprKind::Unary(op, operand) => {
                self.expr(operand)?;
                self.emit(Op::Unary(*op), at);
            }
            ExprKind::Binary(op, left, right) => {
                self.expr(left)?;
                self.expr(right)?;
                self.emit(Op::Binary(*op), at);
            }
            ExprKind::And(left, right) => self.shortcut(left, Op::JumpIfFalseOrPop, right, at)?,
            ExprKind::Or(left, right) => self.shortcut(left, Op::JumpIfTrueOrPop, right, at)?,
            ExprKind::Conditional(parts) => {
                let [value, condition, other] = &**parts;
                self.expr(condition)?;
                let otherwise = self.jump(Op::JumpIfFalse, at);
                self.expr(value)?;
                let end = self.jump(Op::Jump, at);
                self.land(otherwise);
                self.expr(other)?;
                self.land(end);
            }
            ExprKind::Lambda(function) => self.make_function(function, at)?,
            ExprKind::Call(call) => self.call(call, at)?,
            ExprKind::Attribute(of, name) => {
                self.expr(of)?;
                let name = self.scope()?.name(name);
                self.emit(Op::Attribute(name), at);
            }
            ExprKind::Index(of, index) => {
                self.expr(of)?;
                self.expr(index)?;
                self.emit(Op::Index, at);
            }
            ExprKind::Slice(of, parts) => {
                self.expr(of)?;
                for part in &**parts {
                    match part {
                        Some(part) => self.expr(part)?,
                        None => self.emit(Op::None, at),
                    }
                }
                self.emit(Op::Slice, at);
            }
        }
        Ok(())
    }

    fn all(&mut self, items: &[Expr]) -> Result<(), Located> {
        items.iter().try_for_each(|item| self.expr(item))
    }

    fn shortcut(&mut self, left: &Expr, jump: fn(u32) -> Op, right: &Expr, at: u32) -> Result<(), Located> {
        self.expr(left)?;
        let end = self.jump(jump, at);
        self.expr(right)?;
        self.land(end);
        Ok(())
    }

    fn load(&mut self, name: &Arc<str>, at: u32) -> Result<(), Located> {
        let scope = self.scope()?;
        if let Some(slot) = scope.local(name) {
            let op = if scope.has_cells { Op::Cell(slot) } else { Op::Local(slot) };
            self.emit(op, at);
            return Ok(());
        }
        if let Some(index) = self.capture(self.scopes.len().saturating_sub(1), name) {
            self.emit(Op::Captured(index), at);
            return Ok(());
        }
        let Some(global) = self.globals.get(name) else {
            return Err(Located::new(at, self.undefined(name)));
        };
        self.emit(Op::Global(*global), at);
        Ok(())
    }

    /// The place of a variable of an outer function among those that a function uses.
    fn capture(&mut self, depth: usize, name: &Arc<str>) -> Option<u32> {
        if let Some(index) = self.scopes.get(depth)?.captured(name) {
            return Some(index);
        }
        let outer = depth.checked_sub(1)?;
        let capture = match self.scopes.get(outer)?.local(name) {
            Some(slot) => Capture::Local(slot),
            None => Capture::Captured(self.capture(outer, name)?),
        };
        Some(self.scopes.get_mut(depth)?.capture(name, capture))
    }

    fn undefined(&self, name: &str) -> String {
        let lower = name.to_lowercase();
        let is_near = |other: &&Arc<str>| {
            let other = other.to_lowercase();
            other.ends_with(&lower)
                || lower.ends_with(&other)
                || other.replace('_', "") == lower.replace('_', "")
        };
        let mut near: Vec<&str> = self.globals.keys().filter(is_near).map(|name| &**name).collect();
        near.sort_unstable();
        near.truncate(3);
        match near[..] {
            [] => format!("{name} is not defined"),
            _ => format!("{name} is not defined: is it {}?", near.join(" or ")),
        }
    }

    pub(super) fn assign_name(&mut self, name: &Arc<str>, at: u32) -> Result<(), Located> {
        let scope = self.scope()?;
        let slot = scope.local(name).ok_or_else(|| Located::new(at, format!("{name} is not defined")))?;
        let op = if scope.has_cells { Op::SetCell(slot) } else { Op::SetLocal(slot) };
        self.emit(op, at);
        Ok(())
    }

    pub(super) fn make_function(&mut self, function: &Function, at: u32) -> Result<(), Located> {
        let mut defaults = 0;
        for parameter in ordered(&function.parameters) {
            if let Some(default) = &parameter.default {
                self.expr(default)?;
                defaults += 1;
            }
        }
        let code = self.function(function, at)?;
        let scope = self.scope()?;
        scope.functions.push(code);
        let index = count(scope.functions.len() - 1);
        self.emit(Op::Function(index, defaults), at);
        Ok(())
    }

    fn call(&mut self, call: &Call, at: u32) -> Result<(), Located> {
        self.expr(&call.function)?;
        let mut form = Arguments { positional: 0, names: Vec::new(), has_items: false, has_entries: false };
        for argument in &call.arguments {
            match argument {
                Argument::Positional(value) => {
                    self.expr(value)?;
                    form.positional += 1;
                }
                Argument::Named(name, value) => {
                    self.expr(value)?;
                    form.names.push(name.clone());
                }
                Argument::Items(_) | Argument::Entries(_) => {}
            }
        }
        for argument in &call.arguments {
            match argument {
                Argument::Items(value) => {
                    self.expr(value)?;
                    form.has_items = true;
                }
                Argument::Entries(value) => {
                    self.expr(value)?;
                    form.has_entries = true;
                }
                Argument::Positional(_) | Argument::Named(..) => {}
            }
        }
        let scope = self.scope()?;
        scope.calls.push(form);
        let index = count(scope.calls.len() - 1);
        self.emit(Op::Call(index), at);
        Ok(())
    }

    /// The list or dict is in a variable that has no name.
    fn comprehension(&mut self, comprehension: &Comprehension, at: u32) -> Result<(), Located> {
        let scope = self.scope()?;
        scope.enter();
        let result = scope.declare("".into());
        self.emit(if comprehension.key.is_some() { Op::Dict(0) } else { Op::List(0) }, at);
        self.emit(Op::SetLocal(result), at);
        let mut loops = Vec::new();
        for clause in &comprehension.clauses {
            match clause {
                Clause::For(target, items) => {
                    self.expr(items)?;
                    self.emit(Op::Iterate, items.at);
                    let start = self.here();
                    let end = self.jump(Op::Next, target.at);
                    self.declare_targets(target)?;
                    self.assign(target)?;
                    loops.push((start, end));
                }
                Clause::If(condition) => {
                    self.expr(condition)?;
                    // The parser has every condition follow a loop.
                    let start = loops.last().map_or(0, |(start, _)| *start);
                    self.emit(Op::JumpIfFalse(start), condition.at);
                }
            }
        }
        match &comprehension.key {
            Some(key) => {
                self.expr(key)?;
                self.expr(&comprehension.value)?;
                self.emit(Op::Insert(result), key.at);
            }
            None => {
                self.expr(&comprehension.value)?;
                self.emit(Op::Append(result), comprehension.value.at);
            }
        }
        for (start, end) in loops.into_iter().rev() {
            self.emit(Op::Jump(start), at);
            self.land(end);
        }
        self.emit(Op::Local(result), at);
        self.scope()?.leave();
        Ok(())
    }

    /// Declares the variables of a comprehension. Each item has its own, so that functions that are made for the items
    /// see different ones.
    fn declare_targets(&mut self, target: &Expr) -> Result<(), Located> {
        match &target.kind {
            ExprKind::Name(name) => {
                let scope = self.scope()?;
                let slot = scope.declare(name.clone());
                if scope.has_cells {
                    self.emit(Op::NewCell(slot), target.at);
                }
                Ok(())
            }
            ExprKind::List(parts) | ExprKind::Tuple(parts) => {
                parts.iter().try_for_each(|part| self.declare_targets(part))
            }
            _ => Ok(()),
        }
    }
}

fn count(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}
