//! A template that was parsed.

use serde_json::Value;

/// A part of a template.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Node {
    Text(Box<str>),
    /// The value of a pipeline is written, unless it sets a variable.
    Print(Pipeline),
    If(Pipeline, Vec<Node>, Vec<Node>),
    With(Pipeline, Vec<Node>, Vec<Node>),
    Range(Pipeline, Vec<Node>, Vec<Node>),
    Break,
    Continue,
}

/// Commands, each of which gets the value of the one before it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Pipeline {
    /// The action that it is part of, for messages.
    pub(super) text: Box<str>,
    pub(super) variables: Vec<String>,
    /// Whether the variables are new, or are set again.
    pub(super) declares: bool,
    pub(super) commands: Vec<Command>,
}

/// A value, or a function with its arguments.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Command(pub(super) Vec<Operand>);

/// A value, and the fields that are read of it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Operand {
    pub(super) base: Base,
    pub(super) fields: Vec<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Base {
    Dot,
    Variable(String),
    Pipeline(Pipeline),
    Function(Box<str>),
    /// A literal: a string, a number, a boolean or nil.
    Literal(Value),
}
