//! Expressions, by the precedence of their operators.

use super::{
    ast::{BinaryOp, Clause, Comprehension, Expr, ExprKind, UnaryOp},
    parser::Parser,
    token::Kind,
};
use crate::error::Located;

impl Parser {
    /// One expression, or several with commas between them: a tuple.
    pub(super) fn expressions(&mut self) -> Result<Expr, Located> {
        let at = self.at();
        let first = self.expression()?;
        if !self.is(",") {
            return Ok(first);
        }
        let items = self.rest_of_tuple(first)?;
        self.sequence(at, items, ExprKind::Tuple)
    }

    fn rest_of_tuple(&mut self, first: Expr) -> Result<Vec<Expr>, Located> {
        let mut items = vec![first];
        while self.eat(",") && self.starts_expression() {
            items.push(self.expression()?);
        }
        Ok(items)
    }

    fn sequence(
        &self,
        at: u32,
        items: Vec<Expr>,
        kind: impl FnOnce(Vec<Expr>) -> ExprKind,
    ) -> Result<Expr, Located> {
        let height = items.iter().map(|item| item.height).max();
        self.expr_of(at, kind(items), height)
    }

    fn starts_expression(&self) -> bool {
        match self.peek() {
            Kind::Name(_) | Kind::Int(_) | Kind::Float(_) | Kind::Text(_) => true,
            Kind::Mark(mark) => ["(", "[", "{", "-", "+", "~", "not", "lambda"].contains(mark),
            _ => false,
        }
    }

    /// A value, which may depend on a condition.
    pub(super) fn expression(&mut self) -> Result<Expr, Located> {
        self.nested(|parser| {
            if parser.is("lambda") {
                return parser.lambda();
            }
            let at = parser.at();
            let value = parser.either()?;
            if !parser.eat("if") {
                return Ok(value);
            }
            let condition = parser.either()?;
            if !parser.eat("else") {
                return parser.error("expected 'else': a conditional expression needs both values");
            }
            let other = parser.expression()?;
            let heights = [value.height, condition.height, other.height];
            parser.expr_of(at, ExprKind::Conditional(Box::new([value, condition, other])), heights)
        })
    }

    /// Operands of `or`.
    pub(super) fn either(&mut self) -> Result<Expr, Located> {
        let mut left = self.both()?;
        while self.eat("or") {
            let right = self.both()?;
            let heights = [left.height, right.height];
            left = self.expr_of(left.at, ExprKind::Or(Box::new(left), Box::new(right)), heights)?;
        }
        Ok(left)
    }

    /// Operands of `and`.
    fn both(&mut self) -> Result<Expr, Located> {
        let mut left = self.negated()?;
        while self.eat("and") {
            let right = self.negated()?;
            let heights = [left.height, right.height];
            left = self.expr_of(left.at, ExprKind::And(Box::new(left), Box::new(right)), heights)?;
        }
        Ok(left)
    }

    fn negated(&mut self) -> Result<Expr, Located> {
        let at = self.at();
        if !self.eat("not") {
            return self.binary(0);
        }
        let operand = self.nested(Self::negated)?;
        let height = operand.height;
        self.expr_of(at, ExprKind::Unary(UnaryOp::Not, Box::new(operand)), [height])
    }

    /// Operators of at least this precedence.
    fn binary(&mut self, lowest: u8) -> Result<Expr, Located> {
        let mut left = self.unary()?;
        let mut has_compared = false;
        while let Some(op) = self.operator()? {
            let precedence = op.precedence();
            if precedence < lowest {
                break;
            }
            if precedence == 0 && has_compared {
                return self.error("comparisons cannot be chained: use and");
            }
            has_compared |= precedence == 0;
            let at = self.at();
            self.advance();
            if op == BinaryOp::NotIn {
                self.advance();
            }
            let right = self.binary(precedence + 1)?;
            let heights = [left.height, right.height];
            left = self.expr_of(at, ExprKind::Binary(op, Box::new(left), Box::new(right)), heights)?;
        }
        Ok(left)
    }

    fn operator(&self) -> Result<Option<BinaryOp>, Located> {
        let Kind::Mark(mark) = *self.peek() else { return Ok(None) };
        Ok(Some(match mark {
            "==" => BinaryOp::Equal,
            "!=" => BinaryOp::NotEqual,
            "<" => BinaryOp::Less,
            "<=" => BinaryOp::LessOrEqual,
            ">" => BinaryOp::Greater,
            ">=" => BinaryOp::GreaterOrEqual,
            "in" => BinaryOp::In,
            "not" if self.is_followed_by("in") => BinaryOp::NotIn,
            "|" => BinaryOp::Or,
            "^" => BinaryOp::Xor,
            "&" => BinaryOp::And,
            "<<" => BinaryOp::ShiftLeft,
            ">>" => BinaryOp::ShiftRight,
            "+" => BinaryOp::Add,
            "-" => BinaryOp::Subtract,
            "*" => BinaryOp::Multiply,
            "/" => BinaryOp::Divide,
            "//" => BinaryOp::FloorDivide,
            "%" => BinaryOp::Modulo,
            "**" => return self.error("** is not part of Starlark: multiply in a loop"),
            _ => return Ok(None),
        }))
    }

    fn unary(&mut self) -> Result<Expr, Located> {
        let at = self.at();
        let op = match self.peek() {
            Kind::Mark("-") => UnaryOp::Minus,
            Kind::Mark("+") => UnaryOp::Plus,
            Kind::Mark("~") => UnaryOp::Invert,
            _ => return self.primary(),
        };
        self.advance();
        let operand = self.nested(Self::unary)?;
        let height = operand.height;
        self.expr_of(at, ExprKind::Unary(op, Box::new(operand)), [height])
    }

    /// An operand, with its calls, attributes and indexes.
    pub(super) fn primary(&mut self) -> Result<Expr, Located> {
        let mut expr = self.operand()?;
        loop {
            let at = self.at();
            if self.eat(".") {
                let name = self.name()?;
                let height = expr.height;
                expr = self.expr_of(at, ExprKind::Attribute(Box::new(expr), name), [height])?;
            } else if self.eat("(") {
                expr = self.call(expr, at)?;
            } else if self.eat("[") {
                expr = self.index(expr, at)?;
            } else {
                return Ok(expr);
            }
        }
    }

    /// After an opening bracket.
    fn index(&mut self, of: Expr, at: u32) -> Result<Expr, Located> {
        let mut parts = [None, None, None];
        let mut colons = 0;
        loop {
            if self.starts_expression() {
                parts[colons] = Some(if colons == 0 { self.expressions()? } else { self.expression()? });
            }
            if colons == 2 || !self.eat(":") {
                break;
            }
            colons += 1;
        }
        let height = parts.iter().flatten().map(|part| part.height).max().unwrap_or(0).max(of.height);
        let kind = match (colons, parts) {
            (0, [Some(index), ..]) => ExprKind::Index(Box::new(of), Box::new(index)),
            (0, _) => return self.error(format!("expected an index, found {}", self.found())),
            (_, parts) => ExprKind::Slice(Box::new(of), Box::new(parts)),
        };
        self.expect("]")?;
        self.expr_of(at, kind, [height])
    }

    fn operand(&mut self) -> Result<Expr, Located> {
        let at = self.at();
        let kind = match self.peek().clone() {
            Kind::Name(name) => ExprKind::Name(name),
            Kind::Int(value) => ExprKind::Int(value),
            Kind::Float(value) => ExprKind::Float(value),
            Kind::Text(text) => return self.texts(&text, at),
            Kind::Mark("(") => return self.parenthesized(),
            Kind::Mark("[") => return self.list(),
            Kind::Mark("{") => return self.dict(),
            _ => return self.error(format!("expected an expression, found {}", self.found())),
        };
        self.advance();
        self.expr_of(at, kind, [])
    }

    fn texts(&mut self, text: &std::sync::Arc<str>, at: u32) -> Result<Expr, Located> {
        self.advance();
        if matches!(self.peek(), Kind::Text(_)) {
            return self.error("strings that follow each other are not joined: use +");
        }
        self.expr_of(at, ExprKind::Text(text.clone()), [])
    }

    fn parenthesized(&mut self) -> Result<Expr, Located> {
        let at = self.at();
        self.advance();
        if self.eat(")") {
            return self.expr_of(at, ExprKind::Tuple(Vec::new()), []);
        }
        let inner = self.expressions()?;
        if self.is("for") {
            return self.error("generators are not part of Starlark: use a list, in []");
        }
        self.expect(")")?;
        Ok(inner)
    }

    fn list(&mut self) -> Result<Expr, Located> {
        let at = self.at();
        self.advance();
        if self.eat("]") {
            return self.expr_of(at, ExprKind::List(Vec::new()), []);
        }
        let first = self.expression()?;
        if self.is("for") {
            let comprehension = self.comprehension(at, None, first)?;
            self.expect("]")?;
            return Ok(comprehension);
        }
        let items = self.rest_of_tuple(first)?;
        self.expect("]")?;
        self.sequence(at, items, ExprKind::List)
    }

    fn dict(&mut self) -> Result<Expr, Located> {
        let at = self.at();
        self.advance();
        let mut entries = Vec::new();
        let mut height = 0;
        while !self.eat("}") {
            let key = self.expression()?;
            if self.is(",") || self.is("}") {
                return self.error("a set is written as set([...])");
            }
            self.expect(":")?;
            let value = self.expression()?;
            if self.is("for") && entries.is_empty() {
                let comprehension = self.comprehension(at, Some(key), value)?;
                self.expect("}")?;
                return Ok(comprehension);
            }
            height = height.max(key.height).max(value.height);
            entries.push((key, value));
            if !self.eat(",") && !self.is("}") {
                return self.error(format!("expected ',' or '}}', found {}", self.found()));
            }
        }
        self.expr_of(at, ExprKind::Dict(entries), [height])
    }

    fn comprehension(&mut self, at: u32, key: Option<Expr>, value: Expr) -> Result<Expr, Located> {
        let mut height = key.as_ref().map_or(0, |key| key.height).max(value.height);
        let mut clauses = Vec::new();
        loop {
            if self.eat("for") {
                let target = self.targets()?;
                self.expect("in")?;
                let items = self.nested(Self::either)?;
                height = height.max(target.height).max(items.height);
                clauses.push(Clause::For(target, items));
            } else if self.eat("if") {
                let condition = self.nested(Self::either)?;
                height = height.max(condition.height);
                clauses.push(Clause::If(condition));
            } else {
                break;
            }
        }
        let comprehension = Comprehension { key, value, clauses };
        self.expr_of(at, ExprKind::Comprehension(Box::new(comprehension)), [height])
    }
}
