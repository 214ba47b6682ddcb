//! Statements.

use std::sync::Arc;

use super::{
    ast::{BinaryOp, Expr, ExprKind, Function, Statement, StatementKind},
    lexer::tokens,
    token::{Kind, Token},
};
use crate::error::Located;

/// How many expressions may be nested in another one, and how many of them by brackets or words.
const HEIGHT: u16 = 250;
const NESTED: usize = 40;

/// The statements of a script.
pub(crate) fn parse(source: &str) -> Result<Vec<Statement>, Located> {
    let tokens = tokens(source)?;
    let mut parser = Parser { tokens, next: 0, nested: 0, loops: 0 };
    let mut statements = Vec::new();
    while parser.peek() != &Kind::End {
        parser.statement(&mut statements)?;
    }
    Ok(statements)
}

pub(super) struct Parser {
    tokens: Vec<Token>,
    next: usize,
    pub(super) nested: usize,
    /// How many loops of the current function are open.
    pub(super) loops: usize,
}

impl Parser {
    pub(super) fn peek(&self) -> &Kind {
        self.tokens.get(self.next).map_or(&Kind::End, |token| &token.kind)
    }

    /// The byte where the next token starts.
    pub(super) fn at(&self) -> u32 {
        self.tokens.get(self.next).or(self.tokens.last()).map_or(0, |token| token.at)
    }

    pub(super) fn error<T>(&self, message: impl Into<String>) -> Result<T, Located> {
        Err(Located::new(self.at(), message))
    }

    pub(super) fn is(&self, mark: &str) -> bool {
        matches!(self.peek(), Kind::Mark(found) if *found == mark)
    }

    /// Skips a token, if it is next.
    pub(super) fn eat(&mut self, mark: &str) -> bool {
        let is_next = self.is(mark);
        self.next += usize::from(is_next);
        is_next
    }

    pub(super) fn expect(&mut self, mark: &str) -> Result<(), Located> {
        if self.eat(mark) { Ok(()) } else { self.error(format!("expected '{mark}', found {}", self.found())) }
    }

    /// The next token, for messages.
    pub(super) fn found(&self) -> String {
        match self.peek() {
            Kind::Name(name) => format!("'{name}'"),
            Kind::Mark(mark) => format!("'{mark}'"),
            Kind::Int(_) | Kind::Float(_) => "a number".into(),
            Kind::Text(_) => "a string".into(),
            Kind::Newline => "the end of the line".into(),
            Kind::Indent => "an indented line".into(),
            Kind::Dedent => "the end of the block".into(),
            Kind::End => "the end of the script".into(),
        }
    }

    pub(super) fn advance(&mut self) {
        self.next += 1;
    }

    /// Whether the token after the next one is this.
    pub(super) fn is_followed_by(&self, mark: &str) -> bool {
        self.tokens
            .get(self.next + 1)
            .is_some_and(|token| matches!(token.kind, Kind::Mark(found) if found == mark))
    }

    pub(super) fn name(&mut self) -> Result<Arc<str>, Located> {
        match self.peek().clone() {
            Kind::Name(name) => {
                self.advance();
                Ok(name)
            }
            _ => self.error(format!("expected a name, found {}", self.found())),
        }
    }

    /// Parses something that is nested in something else.
    pub(super) fn nested<T>(
        &mut self,
        parse: impl FnOnce(&mut Self) -> Result<T, Located>,
    ) -> Result<T, Located> {
        if self.nested >= NESTED {
            return self.error(format!("expressions are nested deeper than {NESTED}: use variables"));
        }
        self.nested += 1;
        let parsed = parse(self);
        self.nested -= 1;
        parsed
    }

    pub(super) fn expr_of(
        &self,
        at: u32,
        kind: ExprKind,
        parts: impl IntoIterator<Item = u16>,
    ) -> Result<Expr, Located> {
        let height = parts.into_iter().max().unwrap_or(0) + 1;
        if height > HEIGHT {
            return Err(Located::new(at, "the expression is too long: use variables"));
        }
        Ok(Expr { kind, at, height })
    }

    /// One line, or one statement with its blocks.
    fn statement(&mut self, statements: &mut Vec<Statement>) -> Result<(), Located> {
        let at = self.at();
        let kind = match self.peek() {
            Kind::Mark("def") => self.def()?,
            Kind::Mark("if") => self.if_()?,
            Kind::Mark("for") => self.for_()?,
            Kind::Mark("while") => {
                return self.error("while is not part of Starlark: use for with range, and break");
            }
            Kind::Indent => return self.error("unexpected indentation"),
            _ => return self.line(statements),
        };
        statements.push(Statement { kind, at });
        Ok(())
    }

    /// Small statements of one line.
    fn line(&mut self, statements: &mut Vec<Statement>) -> Result<(), Located> {
        loop {
            let at = self.at();
            let kind = self.small()?;
            statements.push(Statement { kind, at });
            let goes_on = self.eat(";");
            if matches!(self.peek(), Kind::Newline) {
                self.advance();
                return Ok(());
            }
            if matches!(self.peek(), Kind::End) {
                return Ok(());
            }
            if !goes_on {
                return self.error(format!("unexpected {}", self.found()));
            }
        }
    }

    fn small(&mut self) -> Result<StatementKind, Located> {
        let Kind::Mark(mark) = *self.peek() else { return self.assignment() };
        match mark {
            "return" => {
                self.advance();
                let ends = matches!(self.peek(), Kind::Newline | Kind::End) || self.is(";");
                Ok(StatementKind::Return(if ends { None } else { Some(self.expressions()?) }))
            }
            "pass" => {
                self.advance();
                Ok(StatementKind::Pass)
            }
            "break" | "continue" if self.loops == 0 => self.error(format!("{mark} outside of a loop")),
            "break" => {
                self.advance();
                Ok(StatementKind::Break)
            }
            "continue" => {
                self.advance();
                Ok(StatementKind::Continue)
            }
            "load" => self.error("load is not available: everything that a script can use is there"),
            _ => self.assignment(),
        }
    }

    fn assignment(&mut self) -> Result<StatementKind, Located> {
        let target = self.expressions()?;
        let Kind::Mark(mark) = *self.peek() else { return Ok(StatementKind::Expr(target)) };
        if mark == "=" {
            self.advance();
            check_target(&target)?;
            let value = self.expressions()?;
            if self.is("=") {
                return self.error("only one assignment is possible in a statement");
            }
            return Ok(StatementKind::Assign(target, value));
        }
        if mark == ":" {
            return self.error("types of variables are not supported");
        }
        let Some(op) = augmented(mark) else { return Ok(StatementKind::Expr(target)) };
        self.advance();
        if matches!(target.kind, ExprKind::Tuple(_) | ExprKind::List(_)) {
            return Err(Located::new(target.at, "a list of variables cannot be changed in place"));
        }
        check_target(&target)?;
        Ok(StatementKind::Augment(target, op, self.expressions()?))
    }

    fn def(&mut self) -> Result<StatementKind, Located> {
        self.advance();
        let name = self.name()?;
        self.expect("(")?;
        let parameters = self.parameters(")")?;
        self.expect(")")?;
        let loops = std::mem::take(&mut self.loops);
        let body = self.block()?;
        self.loops = loops;
        Ok(StatementKind::Def(Function { name, parameters, body }))
    }

    fn if_(&mut self) -> Result<StatementKind, Located> {
        let mut branches = Vec::new();
        loop {
            self.advance();
            let condition = self.expression()?;
            branches.push((condition, self.block()?));
            if !self.is("elif") {
                break;
            }
        }
        let otherwise = if self.eat("else") { self.block()? } else { Vec::new() };
        Ok(StatementKind::If(branches, otherwise))
    }

    fn for_(&mut self) -> Result<StatementKind, Located> {
        self.advance();
        let target = self.targets()?;
        self.expect("in")?;
        let items = self.expressions()?;
        self.loops += 1;
        let body = self.block()?;
        self.loops -= 1;
        if self.is("else") {
            return self.error("a loop has no else");
        }
        Ok(StatementKind::For(target, items, body))
    }

    /// The statements after a colon.
    fn block(&mut self) -> Result<Vec<Statement>, Located> {
        self.expect(":")?;
        let mut statements = Vec::new();
        if !matches!(self.peek(), Kind::Newline) {
            self.line(&mut statements)?;
            return Ok(statements);
        }
        self.advance();
        if !matches!(self.peek(), Kind::Indent) {
            return self.error("expected an indented block");
        }
        self.advance();
        loop {
            match self.peek() {
                Kind::Dedent => {
                    self.advance();
                    return Ok(statements);
                }
                Kind::End => return Ok(statements),
                _ => self.statement(&mut statements)?,
            }
        }
    }

    /// The variables of a loop.
    pub(super) fn targets(&mut self) -> Result<Expr, Located> {
        let at = self.at();
        let first = self.primary()?;
        let target = if self.is(",") {
            let mut all = vec![first];
            while self.eat(",") && !self.is("in") {
                all.push(self.primary()?);
            }
            let heights: Vec<u16> = all.iter().map(|expr| expr.height).collect();
            self.expr_of(at, ExprKind::Tuple(all), heights)?
        } else {
            first
        };
        check_target(&target)?;
        Ok(target)
    }
}

/// Whether something can be assigned to.
fn check_target(target: &Expr) -> Result<(), Located> {
    match &target.kind {
        ExprKind::Name(name) if matches!(&**name, "None" | "True" | "False") => {
            Err(Located::new(target.at, format!("{name} cannot be assigned to")))
        }
        ExprKind::Name(_) | ExprKind::Index(..) => Ok(()),
        ExprKind::List(parts) | ExprKind::Tuple(parts) if !parts.is_empty() => {
            parts.iter().try_for_each(check_target)
        }
        ExprKind::Attribute(..) => {
            Err(Located::new(target.at, "attributes cannot be assigned to: use a dict"))
        }
        _ => Err(Located::new(target.at, "this cannot be assigned to")),
    }
}

fn augmented(mark: &str) -> Option<BinaryOp> {
    Some(match mark {
        "+=" => BinaryOp::Add,
        "-=" => BinaryOp::Subtract,
        "*=" => BinaryOp::Multiply,
        "/=" => BinaryOp::Divide,
        "//=" => BinaryOp::FloorDivide,
        "%=" => BinaryOp::Modulo,
        "&=" => BinaryOp::And,
        "|=" => BinaryOp::Or,
        "^=" => BinaryOp::Xor,
        "<<=" => BinaryOp::ShiftLeft,
        ">>=" => BinaryOp::ShiftRight,
        _ => return None,
    })
}
