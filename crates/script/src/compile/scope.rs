//! The variables of one function.

use std::{collections::HashMap, sync::Arc};

use super::{
    code::{Arguments, Capture, Code, Op, Parameters},
    names::{has_functions, names_of},
};
use crate::syntax::Statement;

/// A function that is being compiled.
pub(super) struct Scope {
    pub(super) ops: Vec<Op>,
    pub(super) places: Vec<u32>,
    pub(super) has_cells: bool,
    pub(super) captures: Vec<Capture>,
    pub(super) functions: Vec<Arc<Code>>,
    pub(super) calls: Vec<Arguments>,
    pub(super) loops: Vec<Loop>,
    slots: Vec<Arc<str>>,
    /// The variables that are visible: those of the function, and those of comprehensions, innermost last.
    visible: Vec<HashMap<Arc<str>, u32>>,
    captured: HashMap<Arc<str>, u32>,
    names: Vec<Arc<str>>,
}

/// A loop that is being compiled.
pub(super) struct Loop {
    /// Where `continue` leads.
    pub(super) start: u32,
    /// The jumps of `break`.
    pub(super) breaks: Vec<Jump>,
}

/// A jump whose target is set later: its place, and its operation.
pub(super) type Jump = (u32, fn(u32) -> Op);

impl Scope {
    pub(super) fn new(parameters: impl Iterator<Item = Arc<str>>, statements: &[Statement]) -> Self {
        let mut scope = Self {
            ops: Vec::new(),
            places: Vec::new(),
            has_cells: has_functions(statements),
            captures: Vec::new(),
            functions: Vec::new(),
            calls: Vec::new(),
            loops: Vec::new(),
            slots: Vec::new(),
            visible: vec![HashMap::new()],
            captured: HashMap::new(),
            names: Vec::new(),
        };
        for name in parameters {
            scope.declare(name);
        }
        names_of(statements, &mut |name| {
            if scope.visible.first().is_none_or(|visible| !visible.contains_key(name)) {
                scope.declare(name.clone());
            }
        });
        scope
    }

    /// A variable that becomes visible.
    pub(super) fn declare(&mut self, name: Arc<str>) -> u32 {
        let slot = u32::try_from(self.slots.len()).unwrap_or(u32::MAX);
        self.slots.push(name.clone());
        if let Some(visible) = self.visible.last_mut() {
            visible.insert(name, slot);
        }
        slot
    }

    /// Starts the variables of a comprehension.
    pub(super) fn enter(&mut self) {
        self.visible.push(HashMap::new());
    }

    pub(super) fn leave(&mut self) {
        self.visible.pop();
    }

    pub(super) fn local(&self, name: &str) -> Option<u32> {
        self.visible.iter().rev().find_map(|visible| visible.get(name)).copied()
    }

    pub(super) fn captured(&self, name: &str) -> Option<u32> {
        self.captured.get(name).copied()
    }

    pub(super) fn capture(&mut self, name: &Arc<str>, capture: Capture) -> u32 {
        // A variable of a comprehension may hide another one of the same name.
        if let Some(index) = self.captures.iter().position(|other| *other == capture) {
            return u32::try_from(index).unwrap_or(u32::MAX);
        }
        let index = u32::try_from(self.captures.len()).unwrap_or(u32::MAX);
        self.captures.push(capture);
        self.captured.insert(name.clone(), index);
        index
    }

    /// The place of a name of an attribute.
    pub(super) fn name(&mut self, name: &Arc<str>) -> u32 {
        let index = self.names.iter().position(|other| other == name).unwrap_or_else(|| {
            self.names.push(name.clone());
            self.names.len() - 1
        });
        u32::try_from(index).unwrap_or(u32::MAX)
    }

    pub(super) fn code(self, name: Arc<str>, parameters: Parameters) -> Code {
        let Self { ops, places, has_cells, captures, functions, calls, slots, names, .. } = self;
        Code { name, ops, places, parameters, slots, has_cells, captures, functions, calls, names }
    }
}
