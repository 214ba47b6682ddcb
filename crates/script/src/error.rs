//! Why a script failed, so that a model can correct it.

use std::fmt;

/// A mistake without its place.
#[derive(Debug)]
pub(crate) struct Fault(pub(crate) String);

impl Fault {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

/// A shorthand for operations that may fail.
pub(crate) type Checked<T> = Result<T, Fault>;

/// A mistake at a byte of the source.
#[derive(Debug)]
pub(crate) struct Located {
    pub(crate) message: String,
    pub(crate) at: u32,
}

impl Located {
    pub(crate) fn new(at: u32, message: impl Into<String>) -> Self {
        Self { message: message.into(), at }
    }
}

/// Why a script has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptError {
    /// The cause.
    pub message: String,
    /// Where it is, unless it is about the script as a whole.
    pub place: Option<Place>,
    /// Where the functions were called that were running, innermost first.
    pub calls: Vec<Place>,
}

/// A place in the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1.
    pub column: usize,
    /// The text of the line.
    pub text: String,
}

/// How many calls, and how many characters of a line, an error shows.
const SHOWN_CALLS: usize = 5;
const SHOWN_CHARACTERS: usize = 200;
/// How many characters of a message, which may have texts of the script.
const SHOWN_MESSAGE: usize = 2_000;

impl ScriptError {
    /// An error about the script as a whole.
    pub(crate) fn whole(message: impl Into<String>) -> Self {
        Self { message: message.into(), place: None, calls: Vec::new() }
    }

    /// An error at the first of these places, which was reached through the others.
    pub(crate) fn at(source: &str, mut message: String, places: &[u32]) -> Self {
        if let Some((end, _)) = message.char_indices().nth(SHOWN_MESSAGE) {
            message.truncate(end);
        }
        let mut places = places.iter().map(|at| Place::new(source, *at));
        let place = places.next();
        Self { message, place, calls: places.take(SHOWN_CALLS).collect() }
    }

    pub(crate) fn located(source: &str, error: Located) -> Self {
        Self::at(source, error.message, &[error.at])
    }
}

impl Place {
    fn new(source: &str, at: u32) -> Self {
        let mut at = (at as usize).min(source.len());
        while !source.is_char_boundary(at) {
            at -= 1;
        }
        let before = &source[..at];
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let text = source[start..].lines().next().unwrap_or_default();
        Self {
            line: before.matches('\n').count() + 1,
            column: source[start..at].chars().count() + 1,
            text: text.chars().take(SHOWN_CHARACTERS).collect(),
        }
    }
}

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(place) = &self.place else { return f.write_str(&self.message) };
        write!(f, "line {}, column {}: {}", place.line, place.column, self.message)?;
        write!(f, "\n    {}", place.text)?;
        if place.column <= SHOWN_CHARACTERS {
            write!(f, "\n    {}^", " ".repeat(place.column - 1))?;
        }
        for call in &self.calls {
            write!(f, "\ncalled from line {}, column {}:\n    {}", call.line, call.column, call.text)?;
        }
        Ok(())
    }
}

impl std::error::Error for ScriptError {}
