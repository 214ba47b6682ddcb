//! What names mean at one place of a template.

use super::Path;

/// The functions of workflows, and those that Go's templates have anyway.
const FUNCTIONS: [&str; 21] = [
    "json", "quote", "fromJson", "and", "or", "not", "len", "index", "slice", "print", "printf", "println",
    "html", "js", "urlquery", "call", "eq", "ne", "lt", "le", "gt",
];

pub(super) fn is_function(name: &str) -> bool {
    FUNCTIONS.contains(&name) || name == "ge"
}

/// What the dot stands for, and the variables. What cannot be known has no path.
#[derive(Clone)]
pub(super) struct Scope {
    pub(super) dot: Option<Path>,
    pub(super) variables: Vec<(String, Option<Path>)>,
    /// Whether it is within a range, which can be left early.
    pub(super) in_range: bool,
}

impl Scope {
    pub(super) fn root() -> Self {
        // The variable without a name is the root.
        Self { dot: Some(Vec::new()), variables: vec![(String::new(), Some(Vec::new()))], in_range: false }
    }

    pub(super) fn declare(&mut self, name: String, path: Option<Path>) {
        self.variables.push((name, path));
    }

    /// A variable that is set anew is not followed any more: where it was set may never be run.
    pub(super) fn forget(&mut self, name: &str) {
        for (_, path) in self.variables.iter_mut().filter(|(other, _)| other == name) {
            *path = None;
        }
    }

    pub(super) fn variable(&self, name: &str) -> Option<&Option<Path>> {
        self.variables.iter().rev().find(|(other, _)| other == name).map(|(_, path)| path)
    }
}
