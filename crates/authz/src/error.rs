//! What can be wrong with a document.

/// A document that cannot be enforced, and where it is at fault. The message is one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {problem}")]
pub struct Error {
    path: String,
    problem: String,
}

impl Error {
    pub(crate) fn new(path: impl Into<String>, problem: impl Into<String>) -> Self {
        // Messages end up in conditions and logs, where a line is a message.
        let problem = problem.into().split_whitespace().collect::<Vec<_>>().join(" ");
        Self { path: path.into(), problem }
    }

    /// The same, as it is called from further outside.
    pub(crate) fn within(self, parent: &str) -> Self {
        Self { path: format!("{parent}.{}", self.path), ..self }
    }

    /// The place in the document, such as `policies[2]`.
    pub fn path(&self) -> &str {
        &self.path
    }
}
