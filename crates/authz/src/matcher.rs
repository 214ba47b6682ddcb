//! Expressions in CEL over the claims of a token, such as `"admins" in claims.groups && claims.email_verified`.
//!
//! The parser is recursive, and a stack that overflows aborts the program. Therefore the length of a text is checked before it is
//! parsed, it is parsed on a stack that suffices for the worst case, and evaluated only if [`rules`] accepts all of
//! it: only known names, existing functions, and nothing that runs for long.

mod claims;
mod rules;

use std::sync::{Arc, LazyLock};

use cel::{Context, Env, ExecutionError, IdedExpr, ParseError, Value, parser::PrattParser};
use serde_json::{Map, Value as Json};

use crate::{
    place::{Place, short},
    size,
};

/// The longest expression, in bytes.
const LENGTH: usize = 4096;
/// How deep brackets may be nested.
const NESTING: u16 = 64;
/// Stack for a text of that length whose every character is an operator.
const PARSING: usize = if cfg!(debug_assertions) { 64 << 20 } else { 16 << 20 };
/// How much of the parser's message is quoted.
const WORDS: usize = 160;

/// The functions of CEL itself, without those of extensions.
static FUNCTIONS: LazyLock<Arc<Env>> =
    LazyLock::new(|| Arc::new(Env::default().with_optional_support(false).with_stdlib()));

/// A boolean expression over the claims of a token.
#[derive(Debug)]
pub struct Matcher {
    expression: IdedExpr,
    /// How deep it nests.
    depth: usize,
}

/// Why a text is not such an expression, in one line that quotes the position.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct MatcherError(String);

/// Why an expression could not be evaluated. It never contains the value of a claim.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EvaluationError {
    /// The expression reads a claim that the token does not have.
    #[error("a claim, or a part of one, that it reads is missing: test for it with has()")]
    Missing,
    /// The expression expects another type than the token has.
    #[error("a claim has another type than it expects: {0}")]
    Type(String),
    /// The result is not a boolean.
    #[error("it is {0}, and neither true nor false")]
    NotBoolean(&'static str),
    /// The evaluation fails, as with a division by zero.
    #[error("it cannot be computed for these claims")]
    Failed,
}

impl Matcher {
    /// Parses an expression. Its only variable is `claims`.
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

    /// Whether the claims match. If the expression cannot be evaluated, they do not.
    pub fn matches(&self, claims: &Map<String, Json>) -> bool {
        self.evaluate(claims).unwrap_or(false)
    }

    /// The same, with the reason why it cannot be evaluated.
    pub fn evaluate(&self, claims: &Map<String, Json>) -> Result<bool, EvaluationError> {
        let value = Value::Map(claims::map(claims)).try_into().map_err(reason)?;
        size::with_stack(self.depth, || {
            let mut context = Context::with_env(FUNCTIONS.clone());
            context.add_variable_as_val(rules::CLAIMS, value);
            match Value::resolve(&self.expression, &context).map_err(reason)? {
                Value::Bool(answer) => Ok(answer),
                other => Err(EvaluationError::NotBoolean(claims::type_of(&other))),
            }
        })
    }
}

/// The first error in the text.
fn first(text: &str, errors: &[ParseError]) -> MatcherError {
    // An error without a position is about the whole text: the nesting is too deep, and the errors with positions
    // follow from that.
    let gave_up = |error: &ParseError| error.pos.0 == 0 && error.msg.contains("recursion limit");
    if errors.iter().any(gave_up) {
        return MatcherError(format!("it nests deeper than {NESTING} levels: write it flatter"));
    }
    let Some(error) = errors.iter().find(|error| error.pos.0 > 0) else {
        return MatcherError("it is no expression".into());
    };
    let words = short(error.msg.trim_start_matches("Syntax error: "), WORDS);
    // Messages appear in conditions and logs, where each has one line.
    let message = format!("{}: {words}", place(text, error.pos));
    MatcherError(message.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// The position of a line and a column, both of which count from one, the column in bytes.
fn place(text: &str, (line, column): (isize, isize)) -> Place {
    let before = |count: isize| usize::try_from(count - 1).unwrap_or_default();
    let lines = text.split_inclusive('\n').take(before(line)).map(str::len);
    let offset = lines.sum::<usize>() + before(column);
    Place::new(text, text.floor_char_boundary(offset.min(text.len())))
}

/// The reason, without the values that the interpreter's own errors quote.
fn reason(error: ExecutionError) -> EvaluationError {
    match error {
        ExecutionError::NoSuchKey(_) | ExecutionError::IndexOutOfBounds(_) => EvaluationError::Missing,
        // It names types only.
        ExecutionError::NoSuchOverload(overload) => EvaluationError::Type(overload.to_string()),
        ExecutionError::UnexpectedType { .. }
        | ExecutionError::ValuesNotComparable(..)
        | ExecutionError::UnsupportedBinaryOperator(..)
        | ExecutionError::UnsupportedKeyType(_) => EvaluationError::Type("no operation is for both".into()),
        _ => EvaluationError::Failed,
    }
}
