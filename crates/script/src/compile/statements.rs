//! Statements.

use super::{Compiler, Op, scope::Loop};
use crate::{
    error::Located,
    syntax::{BinaryOp, Expr, ExprKind, Statement, StatementKind},
};

impl Compiler<'_> {
    pub(super) fn statements(&mut self, statements: &[Statement]) -> Result<(), Located> {
        statements.iter().try_for_each(|statement| self.statement(statement))
    }

    fn statement(&mut self, statement: &Statement) -> Result<(), Located> {
        let at = statement.at;
        match &statement.kind {
            StatementKind::Expr(value) => {
                self.expr(value)?;
                self.emit(Op::Pop, at);
            }
            StatementKind::Assign(target, value) => {
                self.expr(value)?;
                self.assign(target)?;
            }
            StatementKind::Augment(target, op, value) => self.augment(target, *op, value)?,
            StatementKind::If(branches, otherwise) => {
                let mut ends = Vec::new();
                for (condition, body) in branches {
                    self.expr(condition)?;
                    let next = self.jump(Op::JumpIfFalse, condition.at);
                    self.statements(body)?;
                    ends.push(self.jump(Op::Jump, at));
                    self.land(next);
                }
                self.statements(otherwise)?;
                ends.into_iter().for_each(|end| self.land(end));
            }
            StatementKind::For(target, items, body) => {
                self.expr(items)?;
                self.emit(Op::Iterate, items.at);
                let start = self.here();
                let end = self.jump(Op::Next, at);
                self.assign(target)?;
                self.scope()?.loops.push(Loop { start, breaks: Vec::new() });
                self.statements(body)?;
                self.emit(Op::Jump(start), at);
                self.land(end);
                let breaks = self.scope()?.loops.pop().map(|inner| inner.breaks).unwrap_or_default();
                breaks.into_iter().for_each(|jump| self.land(jump));
            }
            StatementKind::Def(function) => {
                self.make_function(function, at)?;
                self.assign_name(&function.name, at)?;
            }
            StatementKind::Return(value) => {
                match value {
                    Some(value) => self.expr(value)?,
                    None => self.emit(Op::None, at),
                }
                self.emit(Op::Return, at);
            }
            StatementKind::Break => {
                self.emit(Op::Stop, at);
                let jump = self.jump(Op::Jump, at);
                if let Some(inner) = self.scope()?.loops.last_mut() {
                    inner.breaks.push(jump);
                }
            }
            StatementKind::Continue => {
                let start = self.scope()?.loops.last().map_or(0, |inner| inner.start);
                self.emit(Op::Jump(start), at);
            }
            StatementKind::Pass => {}
        }
        Ok(())
    }

    /// Assigns the topmost value, and removes it.
    pub(super) fn assign(&mut self, target: &Expr) -> Result<(), Located> {
        let at = target.at;
        match &target.kind {
            ExprKind::Name(name) => self.assign_name(name, at)?,
            ExprKind::Index(of, index) => {
                self.expr(of)?;
                self.expr(index)?;
                self.emit(Op::SetIndex, at);
            }
            ExprKind::List(parts) | ExprKind::Tuple(parts) => {
                self.emit(Op::Unpack(u32::try_from(parts.len()).unwrap_or(u32::MAX)), at);
                for part in parts {
                    self.assign(part)?;
                }
            }
            _ => return Err(Located::new(at, "this cannot be assigned to")),
        }
        Ok(())
    }

    fn augment(&mut self, target: &Expr, op: BinaryOp, value: &Expr) -> Result<(), Located> {
        let at = target.at;
        if let ExprKind::Index(of, index) = &target.kind {
            self.expr(of)?;
            self.expr(index)?;
            self.emit(Op::Repeat(2), at);
            self.emit(Op::Index, at);
            self.expr(value)?;
            self.emit(Op::InPlace(op), at);
            self.emit(Op::Rotate, at);
            self.emit(Op::SetIndex, at);
            return Ok(());
        }
        self.expr(target)?;
        self.expr(value)?;
        self.emit(Op::InPlace(op), at);
        self.assign(target)
    }
}
