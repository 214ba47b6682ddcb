//! Functions and their arguments.

use super::{
    ast::{Argument, Call, Expr, ExprKind, Function, Parameter, ParameterKind, Statement, StatementKind},
    parser::Parser,
    token::Kind,
};
use crate::error::Located;

/// How many arguments a call may have, and how many parameters a function.
const ARGUMENTS: usize = 255;

impl Parser {
    /// The arguments of a call, after the opening bracket.
    pub(super) fn call(&mut self, function: Expr, at: u32) -> Result<Expr, Located> {
        let mut arguments = Vec::new();
        let mut height = function.height;
        while !self.eat(")") {
            let argument = self.argument(&arguments)?;
            let (Argument::Positional(value)
            | Argument::Named(_, value)
            | Argument::Items(value)
            | Argument::Entries(value)) = &argument;
            height = height.max(value.height);
            arguments.push(argument);
            if arguments.len() > ARGUMENTS {
                return self.error(format!("a call has more than {ARGUMENTS} arguments"));
            }
            if self.is("for") {
                return self.error("generators are not part of Starlark: use a list, in []");
            }
            if !self.eat(",") && !self.is(")") {
                return self.error(format!("expected ',' or ')', found {}", self.found()));
            }
        }
        self.expr_of(at, ExprKind::Call(Box::new(Call { function, arguments })), [height])
    }

    fn argument(&mut self, before: &[Argument]) -> Result<Argument, Located> {
        if self.eat("**") {
            if before.iter().any(|argument| matches!(argument, Argument::Entries(_))) {
                return self.error("a call has one ** argument");
            }
            return self.expression().map(Argument::Entries);
        }
        if before.iter().any(|argument| matches!(argument, Argument::Entries(_))) {
            return self.error("the ** argument must be the last one");
        }
        if self.eat("*") {
            if before.iter().any(|argument| matches!(argument, Argument::Items(_))) {
                return self.error("a call has one * argument");
            }
            return self.expression().map(Argument::Items);
        }
        if let Kind::Name(name) = self.peek().clone()
            && self.is_followed_by("=")
        {
            let is_repeated =
                |argument: &Argument| matches!(argument, Argument::Named(other, _) if *other == name);
            if before.iter().any(is_repeated) {
                return self.error(format!("the argument {name} is given twice"));
            }
            self.advance();
            self.advance();
            return Ok(Argument::Named(name, self.expression()?));
        }
        if before.iter().any(|argument| !matches!(argument, Argument::Positional(_))) {
            return self.error("positional arguments must come before named ones");
        }
        self.expression().map(Argument::Positional)
    }

    pub(super) fn lambda(&mut self) -> Result<Expr, Located> {
        let at = self.at();
        self.advance();
        let parameters = self.parameters(":")?;
        self.expect(":")?;
        let loops = std::mem::take(&mut self.loops);
        let value = self.expression()?;
        self.loops = loops;
        let defaults = parameters.iter().filter_map(|parameter| parameter.default.as_ref());
        let height = defaults.map(|default| default.height).max().unwrap_or(0).max(value.height);
        let body = vec![Statement { at: value.at, kind: StatementKind::Return(Some(value)) }];
        let function = Function { name: "lambda".into(), parameters, body };
        self.expr_of(at, ExprKind::Lambda(Box::new(function)), [height])
    }

    /// Parameters up to a mark, which is not skipped.
    pub(super) fn parameters(&mut self, end: &str) -> Result<Vec<Parameter>, Located> {
        let mut parameters: Vec<Parameter> = Vec::new();
        let mut names_only = false;
        while !self.is(end) {
            if parameters.last().is_some_and(|last| last.kind == ParameterKind::Entries) {
                return self.error("the ** parameter must be the last one");
            }
            if self.eat("**") {
                parameters.push(Parameter {
                    name: self.name()?,
                    kind: ParameterKind::Entries,
                    default: None,
                });
            } else if self.is("*") && names_only {
                return self.error("a function has one * parameter");
            } else if self.eat("*") {
                names_only = true;
                if !self.is(",") {
                    parameters.push(Parameter {
                        name: self.name()?,
                        kind: ParameterKind::Items,
                        default: None,
                    });
                }
            } else {
                let name = self.name()?;
                let kind = if names_only { ParameterKind::Named } else { ParameterKind::Positional };
                if self.is(":") && end == ")" {
                    return self.error("types of parameters are not supported");
                }
                let default = if self.eat("=") { Some(self.expression()?) } else { None };
                let follows = parameters.last().is_some_and(|last| last.default.is_some());
                if kind == ParameterKind::Positional && default.is_none() && follows {
                    return self.error("a parameter without a default follows one with a default");
                }
                parameters.push(Parameter { name, kind, default });
            }
            let last = parameters.len().saturating_sub(1);
            let (earlier, latest) = parameters.split_at(last);
            if let Some(latest) = latest.first()
                && earlier.iter().any(|other| other.name == latest.name)
            {
                return self.error(format!("the parameter {} is there twice", latest.name));
            }
            if parameters.len() > ARGUMENTS {
                return self.error(format!("a function has more than {ARGUMENTS} parameters"));
            }
            if !self.eat(",") && !self.is(end) {
                return self.error(format!("expected ',' or '{end}', found {}", self.found()));
            }
        }
        Ok(parameters)
    }
}
