//! The words of a script.

use std::sync::Arc;

/// What a token is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Kind {
    Name(Arc<str>),
    /// A keyword, operator or bracket.
    Mark(&'static str),
    Int(i128),
    Float(f64),
    Text(Arc<str>),
    Newline,
    Indent,
    Dedent,
    End,
}

/// A token, and the byte where it starts.
#[derive(Clone, Debug)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    pub(crate) at: u32,
}

/// Words that cannot be names.
pub(crate) const KEYWORDS: [&str; 16] = [
    "and", "break", "continue", "def", "elif", "else", "for", "if", "in", "lambda", "load", "not", "or",
    "pass", "return", "while",
];

/// Words of Python that Starlark reserves, and what to use instead.
pub(crate) const RESERVED: [(&str, &str); 17] = [
    ("as", "it has no modules or exceptions"),
    ("assert", "use fail"),
    ("async", "use parallel"),
    ("await", "use parallel"),
    ("class", "use dicts"),
    ("del", "use pop"),
    ("except", "it has no exceptions"),
    ("finally", "it has no exceptions"),
    ("from", "everything that a script can use is there"),
    ("global", "use a dict"),
    ("import", "everything that a script can use is there"),
    ("is", "use =="),
    ("nonlocal", "use a dict"),
    ("raise", "use fail"),
    ("try", "it has no exceptions"),
    ("with", "it has no exceptions"),
    ("yield", "use a list"),
];

/// Operators and brackets, longest first.
pub(crate) const MARKS: [&str; 44] = [
    "**=", "//=", "<<=", ">>=", "**", "//", "<<", ">>", "<=", ">=", "==", "!=", "+=", "-=", "*=", "/=", "%=",
    "&=", "|=", "^=", "->", ":=", "+", "-", "*", "/", "%", "&", "|", "^", "~", "<", ">", "=", "(", ")", "[",
    "]", "{", "}", ",", ":", ".", ";",
];
