//! Paths in a patch.

use std::fmt;

use crate::{Error, error::Problem};

/// A path in a patch, as a chain up to its root, so that only an error allocates.
#[derive(Clone, Copy)]
pub(crate) enum Path<'a> {
    Root,
    Field(&'a Path<'a>, &'a str),
    Item(&'a Path<'a>, usize),
}

impl<'a> Path<'a> {
    pub(crate) fn field(&'a self, name: &'a str) -> Self {
        Self::Field(self, name)
    }

    pub(crate) fn item(&'a self, index: usize) -> Self {
        Self::Item(self, index)
    }

    /// The name of the field at this path.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Root => "podTemplateSpec",
            Self::Field(_, name) => name,
            Self::Item(parent, _) => parent.name(),
        }
    }

    /// An error at this path.
    pub(crate) fn error(&self, problem: Problem) -> Error {
        Error { path: self.to_string(), problem }
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => f.write_str(self.name()),
            Self::Field(parent, name) => write!(f, "{parent}.{name}"),
            Self::Item(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}
