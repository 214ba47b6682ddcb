//! Expressions in CEL over the claims of a token, such as `"admins" in claims.groups && claims.email_verified`.
//!
//! The parser is recursive, and the program ends at a panic, so nothing could be caught. Therefore a text is bounded
//! before it is parsed, parsed on a stack that has room for the worst, and evaluated only if [`rules`] knows everything
//! in it: what is left is names that are there, functions that exist, and nothing that runs for long.

mod claims;
mod rules;

use std::sync::{Arc, LazyLock};

use cel::{Context, Env, ExecutionError, IdedExpr, ParseError, Value, parser::PrattParser};
use serde_json::{Map, Value as Json};

use crate::{
    place::{Place, short},
    size,
};

/// How long an expression may be.
const LENGTH: usize = 4096;
/// How many brackets may be open at once.
const NESTING: u16 = 64;
/// Stack for a text of that length whose every character is an operator.
const PARSING: usize = if cfg!(debug_assertions) { 64 << 20 } else { 16 << 20 };
/// How much of the parser's own words is passed on.
const WORDS: usize = 160;

/// The functions of CEL itself, without those of extensions.
static FUNCTIONS: LazyLock<Arc<Env>> =
    LazyLock::new(|| Arc::new(Env::default().with_optional_support(false).with_stdlib()));

/// An expression that says yes or no to the claims of a token.
#[derive(Debug)]
pub struct Matcher {
    expression: IdedExpr,
    /// How deep it nests.
    depth: usize,
}

/// Why a text is no such expression, in one line that quotes the place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct MatcherError(String);

/// Why claims do not match although nothing says so. It never holds the value of a claim.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoMatch {
    /// The expression reads what the token does not have.
    #[error("a claim, or a part of one, that it reads is not there: test for it by has()")]
    Missing,
    /// The expression expects another type than the token has.
    #[error("a claim has another type than it expects: {0}")]
    Type(String),
    /// It came to something other than yes or no.
    #[error("it is {0}, and neither true nor false")]
    NotBoolean(&'static str),
    /// It cannot be computed, as with a division by zero.
    #[error("it cannot be computed for these claims")]
    Failed,
}

impl Matcher {
    /// Reads an expression. Its only name is `claims`.
    pub fn compile(text: &str) -> Result<Self, MatcherError> {
        if text.len() > LENGTH {
            let length = text.len();
            return Err(MatcherError(format!("it is {length} bytes long: write at most {LENGTH}")));
        }
        stacker::maybe_grow(PARSING, PARSING, || {
            let parser = PrattParser::new().max_recursion_depth(NESTING);
            let expression = parser.parse(text).map_err(|errors| first(text, &errors.errors))?;
            let depth = rules::depth(&expression).map_err(MatcherError)?;
            Ok(Self { expression, depth })
        })
    }

    /// Whether the claims match. What cannot be told is no match.
    pub fn matches(&self, claims: &Map<String, Json>) -> bool {
        self.evaluate(claims).unwrap_or(false)
    }

    /// The same, with the reason why it cannot be told.
    pub fn evaluate(&self, claims: &Map<String, Json>) -> Result<bool, NoMatch> {
        let value = Value::Map(claims::map(claims)).try_into().map_err(reason)?;
        size::with_stack(self.depth, || {
            let mut context = Context::with_env(FUNCTIONS.clone());
            context.add_variable_as_val(rules::CLAIMS, value);
            match Value::resolve(&self.expression, &context).map_err(reason)? {
                Value::Bool(answer) => Ok(answer),
                other => Err(NoMatch::NotBoolean(claims::type_of(&other))),
            }
        })
    }
}

/// The error that stands first in the text.
fn first(text: &str, errors: &[ParseError]) -> MatcherError {
    // What has no place is about the whole: the parser gave up at what it nests, and errors with a place come of that.
    let gave_up = |error: &ParseError| error.pos.0 == 0 && error.msg.contains("recursion limit");
    if errors.iter().any(gave_up) {
        return MatcherError(format!("it nests deeper than {NESTING} levels: write it flatter"));
    }
    let Some(error) = errors.iter().find(|error| error.pos.0 > 0) else {
        return MatcherError("it is no expression".into());
    };
    let words = short(error.msg.trim_start_matches("Syntax error: "), WORDS);
    // Messages end up in conditions and logs, where a line is a message.
    let message = format!("{}: {words}", place(text, error.pos));
    MatcherError(message.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// The place of a line and a column, both of which count from one, and the column counts bytes.
fn place(text: &str, (line, column): (isize, isize)) -> Place {
    let before = |count: isize| usize::try_from(count - 1).unwrap_or_default();
    let lines = text.split_inclusive('\n').take(before(line)).map(str::len);
    let offset = lines.sum::<usize>() + before(column);
    Place::new(text, text.floor_char_boundary(offset.min(text.len())))
}

/// The reason, without the values that the interpreter's own errors quote.
fn reason(error: ExecutionError) -> NoMatch {
    match error {
        ExecutionError::NoSuchKey(_) | ExecutionError::IndexOutOfBounds(_) => NoMatch::Missing,
        // It names types only.
        ExecutionError::NoSuchOverload(overload) => NoMatch::Type(overload.to_string()),
        ExecutionError::UnexpectedType { .. }
        | ExecutionError::ValuesNotComparable(..)
        | ExecutionError::UnsupportedBinaryOperator(..)
        | ExecutionError::UnsupportedKeyType(_) => NoMatch::Type("no operation is for both".into()),
        _ => NoMatch::Failed,
    }
}
