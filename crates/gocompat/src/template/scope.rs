//! The dot and the variables at one position of a template.

use super::Path;

/// The paths of the dot and of the variables. A value of unknown origin has none.
#[derive(Clone)]
pub(super) struct Scope {
    pub(super) dot: Option<Path>,
    pub(super) variables: Vec<(String, Option<Path>)>,
}

impl Scope {
    pub(super) fn root() -> Self {
        // The variable `$`, without a name, is the root.
        Self { dot: Some(Vec::new()), variables: vec![(String::new(), Some(Vec::new()))] }
    }

    pub(super) fn declare(&mut self, name: String, path: Option<Path>) {
        self.variables.push((name, path));
    }

    /// Forgets the path of a variable that is assigned again: the branch that assigns it may never run.
    pub(super) fn forget(&mut self, name: &str) {
        for (_, path) in self.variables.iter_mut().filter(|(other, _)| other == name) {
            *path = None;
        }
    }

    pub(super) fn variable(&self, name: &str) -> Option<&Option<Path>> {
        self.variables.iter().rev().find(|(other, _)| other == name).map(|(_, path)| path)
    }
}
