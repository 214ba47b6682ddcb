//! The error of an invalid template.

/// A text is not a template of the supported subset. The message quotes the action.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TemplateError(String);

impl From<String> for TemplateError {
    fn from(message: String) -> Self {
        Self(message)
    }
}

impl From<&str> for TemplateError {
    fn from(message: &str) -> Self {
        Self(message.into())
    }
}

/// A text in quotes, truncated to a length that fits a message.
pub(super) fn quoted(text: &str) -> String {
    const MAX_CHARS: usize = 80;
    match text.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{:?}…", &text[..end]),
        None => format!("{text:?}"),
    }
}

/// Why a template has no text with some data. The message quotes the action.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct RenderError(String);

impl From<String> for RenderError {
    fn from(message: String) -> Self {
        Self(message)
    }
}

impl From<&str> for RenderError {
    fn from(message: &str) -> Self {
        Self(message.into())
    }
}
