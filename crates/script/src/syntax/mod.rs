//! The syntax of Starlark. Nothing here is deeper than a fixed bound, so that no source can exhaust the stack.

mod ast;
mod expressions;
mod functions;
mod lexer;
mod literal;
mod parser;
mod token;

pub(crate) use ast::{
    Argument, BinaryOp, Call, Clause, Comprehension, Expr, ExprKind, Function, Parameter, ParameterKind,
    Statement, StatementKind, UnaryOp,
};
pub(crate) use parser::parse;

/// Whether a word can be the name of a variable.
pub(crate) fn is_identifier(word: &str) -> bool {
    let starts = word.starts_with(|first: char| first == '_' || first.is_alphabetic());
    let is_reserved =
        token::KEYWORDS.contains(&word) || token::RESERVED.iter().any(|(other, _)| *other == word);
    starts && !is_reserved && word.chars().all(|next| next == '_' || next.is_alphanumeric())
}
