//! From a tree to code for the machine.

mod code;
mod expressions;
mod names;
mod scope;
mod statements;

use std::{collections::HashMap, sync::Arc};

pub(crate) use code::{Arguments, Capture, Code, Constant, Op, Parameters, Program};
use scope::{Jump, Scope};

use crate::{
    error::Located,
    syntax::{Function, ParameterKind, Statement},
};

/// The code of a script. `globals` has the place of each name that every script can use.
pub(crate) fn program(
    statements: &[Statement],
    globals: &HashMap<Arc<str>, u32>,
) -> Result<Program, Located> {
    let mut compiler = Compiler { globals, constants: Vec::new(), scopes: Vec::new() };
    let main = compiler.body("script".into(), &[], statements, 0)?;
    Ok(Program { main: Arc::new(main), constants: compiler.constants })
}

struct Compiler<'a> {
    globals: &'a HashMap<Arc<str>, u32>,
    constants: Vec<Constant>,
    /// The functions that are being compiled, innermost last.
    scopes: Vec<Scope>,
}

impl Compiler<'_> {
    fn function(&mut self, function: &Function, at: u32) -> Result<Arc<Code>, Located> {
        self.body(function.name.clone(), &function.parameters, &function.body, at).map(Arc::new)
    }

    fn body(
        &mut self,
        name: Arc<str>,
        parameters: &[crate::syntax::Parameter],
        statements: &[Statement],
        at: u32,
    ) -> Result<Code, Located> {
        let count =
            |kind: ParameterKind| parameters.iter().filter(|parameter| parameter.kind == kind).count();
        let described = Parameters {
            // The order of their slots: those by position, those by name, and the rest.
            names: ordered(parameters).map(|parameter| parameter.name.clone()).collect(),
            positional: count(ParameterKind::Positional),
            named: count(ParameterKind::Named),
            has_default: ordered(parameters).map(|parameter| parameter.default.is_some()).collect(),
            has_items: count(ParameterKind::Items) > 0,
            has_entries: count(ParameterKind::Entries) > 0,
        };
        let scope = Scope::new(described.names.iter().cloned(), statements);
        self.scopes.push(scope);
        self.statements(statements)?;
        self.emit(Op::None, at);
        self.emit(Op::Return, at);
        let Some(scope) = self.scopes.pop() else { return Err(Located::new(at, "the script has no code")) };
        Ok(scope.code(name, described))
    }

    fn scope(&mut self) -> Result<&mut Scope, Located> {
        self.scopes.last_mut().ok_or_else(|| Located::new(0, "the script has no code"))
    }

    fn emit(&mut self, op: Op, at: u32) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.ops.push(op);
            scope.places.push(at);
        }
    }

    /// Where the next operation will be.
    fn here(&self) -> u32 {
        self.scopes.last().map_or(0, |scope| u32::try_from(scope.ops.len()).unwrap_or(u32::MAX))
    }

    /// Emits a jump whose target is set later.
    fn jump(&mut self, op: fn(u32) -> Op, at: u32) -> Jump {
        let place = self.here();
        self.emit(op(u32::MAX), at);
        (place, op)
    }

    /// Makes a jump lead here.
    fn land(&mut self, (place, op): Jump) {
        let here = self.here();
        if let Some(jump) = self.scopes.last_mut().and_then(|scope| scope.ops.get_mut(place as usize)) {
            *jump = op(here);
        }
    }

    fn constant(&mut self, constant: Constant, at: u32) {
        let place = u32::try_from(self.constants.len()).unwrap_or(u32::MAX);
        self.constants.push(constant);
        self.emit(Op::Constant(place), at);
    }
}

/// Parameters in the order of their slots.
fn ordered(parameters: &[crate::syntax::Parameter]) -> impl Iterator<Item = &crate::syntax::Parameter> {
    let kinds =
        [ParameterKind::Positional, ParameterKind::Named, ParameterKind::Items, ParameterKind::Entries];
    kinds.into_iter().flat_map(|kind| parameters.iter().filter(move |parameter| parameter.kind == kind))
}
