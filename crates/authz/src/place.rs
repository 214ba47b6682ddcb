//! Positions in a text, for messages.

use std::fmt;

/// How much of a text is quoted.
const QUOTE: usize = 40;

/// A position in a text: line, column, and the text there.
pub(crate) struct Place {
    line: usize,
    column: usize,
    quote: Quote,
}

enum Quote {
    At(String),
    /// The text ends there.
    After(String),
}

impl Place {
    pub(crate) fn new(text: &str, offset: usize) -> Self {
        let (before, rest) = text.split_at_checked(offset).unwrap_or((text, ""));
        let start = before.rfind('\n').map_or(0, |at| at + 1);
        let line = before.matches('\n').count() + 1;
        let column = before[start..].chars().count() + 1;
        let ahead = rest.lines().next().unwrap_or_default().trim();
        let quote = if ahead.is_empty() {
            let written = before.trim_end();
            let skipped = written.chars().count().saturating_sub(QUOTE);
            let end: String = written.chars().skip(skipped).collect();
            Quote::After(if skipped > 0 { format!("…{end}") } else { end })
        } else {
            Quote::At(short(ahead, QUOTE))
        };
        Self { line, column, quote }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}, ", self.line, self.column)?;
        match &self.quote {
            Quote::At(text) => write!(f, "at `{text}`"),
            Quote::After(text) => write!(f, "after `{text}`"),
        }
    }
}

/// The start of a text.
pub(crate) fn short(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.into(),
    }
}
