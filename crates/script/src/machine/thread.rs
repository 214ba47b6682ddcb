//! One thread of a script, with its stack.

use std::sync::Arc;

use crate::{
    builtins::Arguments,
    compile::Code,
    meter::Meter,
    value::{VALUE, Value},
};

/// A thread.
pub(super) struct Thread {
    pub(super) stack: Vec<Value>,
    pub(super) frames: Vec<Frame>,
    pub(super) meter: Meter,
    /// The thread that waits for it, and the place of its result there.
    pub(super) parent: Option<(usize, usize)>,
    /// What it waits for.
    pub(super) join: Option<Join>,
    /// What its stack takes while it waits.
    pub(super) waiting: usize,
    /// The function that it starts with.
    pub(super) start: Option<Value>,
    /// How deep the calls were nested where it was started.
    base_depth: usize,
}

/// Threads whose results are waited for.
pub(super) struct Join {
    pub(super) results: Vec<Value>,
    pub(super) left: usize,
}

/// A function that is running.
pub(super) struct Frame {
    pub(super) code: Arc<Code>,
    /// The cells of outer functions.
    pub(super) captured: Arc<[Value]>,
    /// The next operation.
    pub(super) next: usize,
    /// Where its variables start on the stack.
    pub(super) base: usize,
    pub(super) loops: Vec<Iteration>,
    /// What was counted of the stack when it was called.
    pub(super) reserved: usize,
    /// Whether it is part of the prelude, and not of the script.
    pub(super) is_hidden: bool,
}

/// A loop that is running.
#[derive(Clone, Copy)]
pub(super) struct Iteration {
    pub(super) of: Value,
    pub(super) next: usize,
}

/// Why a thread does not go on by itself.
pub(super) enum Pause {
    /// Others have their turn.
    Turn,
    /// It calls a tool.
    Tool(u32, Arguments),
    /// It starts threads.
    Parallel(Vec<Value>),
    End(Value),
}

impl Thread {
    pub(super) fn new(code: Arc<Code>, meter: Meter, parent: Option<(usize, usize)>) -> Self {
        let slots = code.slots.len();
        let frame = Frame {
            code,
            captured: [].into(),
            next: 0,
            base: 0,
            loops: Vec::new(),
            reserved: 0,
            is_hidden: false,
        };
        Self {
            stack: vec![Value::Unbound; slots],
            frames: vec![frame],
            meter,
            parent,
            join: None,
            waiting: 0,
            start: None,
            base_depth: 0,
        }
    }

    /// A thread that calls a function.
    pub(super) fn calling(function: Value, meter: Meter, parent: (usize, usize), depth: usize) -> Self {
        Self {
            stack: Vec::new(),
            frames: Vec::new(),
            meter,
            parent: Some(parent),
            join: None,
            waiting: 0,
            start: Some(function),
            base_depth: depth,
        }
    }

    /// How deep calls are nested.
    pub(super) fn depth(&self) -> usize {
        self.base_depth + self.frames.len()
    }

    /// What its stack takes that no frame has counted.
    pub(super) fn uncounted(&self) -> usize {
        let base = self.frames.last().map_or(0, |frame| frame.base);
        (self.stack.len() - base.min(self.stack.len())) * VALUE
    }

    /// The places in the source where it is, innermost first.
    pub(super) fn places(&self) -> impl Iterator<Item = u32> {
        let frames = self.frames.iter().rev().filter(|frame| !frame.is_hidden);
        frames.filter_map(|frame| frame.code.places.get(frame.next.saturating_sub(1)).copied())
    }

    pub(super) fn add_roots(&self, roots: &mut Vec<Value>) {
        roots.extend(&self.stack);
        roots.extend(self.start);
        roots.extend(self.join.iter().flat_map(|join| &join.results));
        for frame in &self.frames {
            roots.extend(frame.captured.iter());
            roots.extend(frame.loops.iter().map(|iteration| iteration.of));
        }
    }
}
