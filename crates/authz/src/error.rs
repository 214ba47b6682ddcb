//! The error of an invalid document.

/// A document cannot be enforced. The message is one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {problem}")]
pub struct Error {
    path: String,
    problem: String,
}

impl Error {
    pub(crate) fn new(path: impl Into<String>, problem: impl Into<String>) -> Self {
        // Messages appear in conditions and logs, where each has one line.
        let problem = problem.into().split_whitespace().collect::<Vec<_>>().join(" ");
        Self { path: path.into(), problem }
    }

    /// The same error with a path that starts one level higher up.
    pub(crate) fn within(self, parent: &str) -> Self {
        Self { path: format!("{parent}.{}", self.path), ..self }
    }

    /// The path in the document, such as `policies[2]`.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// What is wrong there, without the place.
    pub fn message(&self) -> &str {
        &self.problem
    }
}
