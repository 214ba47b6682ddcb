//! The code of a script, for a machine with a stack.

use std::sync::Arc;

use crate::syntax::{BinaryOp, UnaryOp};

/// A script that can run.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) main: Arc<Code>,
    pub(crate) constants: Vec<Constant>,
}

/// A value of the source.
#[derive(Debug)]
pub(crate) enum Constant {
    Int(i128),
    Float(f64),
    Text(Arc<str>),
}

/// The code of one function.
#[derive(Debug)]
pub(crate) struct Code {
    pub(crate) name: Arc<str>,
    pub(crate) ops: Vec<Op>,
    /// The byte of the source that each operation comes from.
    pub(crate) places: Vec<u32>,
    pub(crate) parameters: Parameters,
    /// The names of its variables. Parameters come first.
    pub(crate) slots: Vec<Arc<str>>,
    /// Whether variables are in cells, because inner functions may use them.
    pub(crate) has_cells: bool,
    pub(crate) captures: Vec<Capture>,
    pub(crate) functions: Vec<Arc<Code>>,
    pub(crate) calls: Vec<Arguments>,
    pub(crate) names: Vec<Arc<str>>,
}

#[derive(Debug)]
pub(crate) struct Parameters {
    pub(crate) names: Vec<Arc<str>>,
    pub(crate) positional: usize,
    pub(crate) named: usize,
    pub(crate) has_default: Vec<bool>,
    pub(crate) has_items: bool,
    pub(crate) has_entries: bool,
}

/// Where a function finds a variable of an outer one, when it is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Capture {
    Local(u32),
    Captured(u32),
}

/// The form of a call. The values are on the stack: positional, named, the items and the entries.
#[derive(Debug)]
pub(crate) struct Arguments {
    pub(crate) positional: usize,
    pub(crate) names: Vec<Arc<str>>,
    pub(crate) has_items: bool,
    pub(crate) has_entries: bool,
}

/// An operation.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Op {
    None,
    Constant(u32),
    Global(u32),
    Local(u32),
    SetLocal(u32),
    Cell(u32),
    SetCell(u32),
    /// Gives a variable a new cell.
    NewCell(u32),
    Captured(u32),
    Pop,
    /// Repeats the topmost values.
    Repeat(u32),
    /// Moves the topmost value below the two others.
    Rotate,
    Unary(UnaryOp),
    Binary(BinaryOp),
    /// An operator that may change its left operand.
    InPlace(BinaryOp),
    Jump(u32),
    JumpIfFalse(u32),
    /// Keeps the value where it jumps, and removes it otherwise.
    JumpIfFalseOrPop(u32),
    JumpIfTrueOrPop(u32),
    List(u32),
    Tuple(u32),
    Dict(u32),
    /// Adds to the list or dict of a comprehension, in a variable.
    Append(u32),
    Insert(u32),
    Attribute(u32),
    Index,
    SetIndex,
    Slice,
    Unpack(u32),
    /// Starts to iterate.
    Iterate,
    /// The next item, or a jump if there is none.
    Next(u32),
    /// Stops iterating before the end.
    Stop,
    Call(u32),
    /// Makes a function, with this many defaults on the stack.
    Function(u32, u32),
    Return,
}
