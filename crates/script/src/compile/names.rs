//! What the statements of a function assign to, and whether it has inner functions.

use std::sync::Arc;

use crate::syntax::{Argument, Clause, Expr, ExprKind, Statement, StatementKind};

/// Calls a function with each variable that these statements assign to.
pub(super) fn names_of(statements: &[Statement], found: &mut impl FnMut(&Arc<str>)) {
    for statement in statements {
        match &statement.kind {
            StatementKind::Assign(target, _) | StatementKind::Augment(target, ..) => targets(target, found),
            StatementKind::For(target, _, body) => {
                targets(target, found);
                names_of(body, found);
            }
            StatementKind::If(branches, otherwise) => {
                branches.iter().for_each(|(_, body)| names_of(body, found));
                names_of(otherwise, found);
            }
            StatementKind::Def(function) => found(&function.name),
            _ => {}
        }
    }
}

fn targets(target: &Expr, found: &mut impl FnMut(&Arc<str>)) {
    match &target.kind {
        ExprKind::Name(name) => found(name),
        ExprKind::List(parts) | ExprKind::Tuple(parts) => parts.iter().for_each(|part| targets(part, found)),
        _ => {}
    }
}

/// Whether any of these statements makes a function.
pub(super) fn has_functions(statements: &[Statement]) -> bool {
    statements.iter().any(|statement| match &statement.kind {
        StatementKind::Def(_) => true,
        StatementKind::Expr(value) => makes_function(value),
        StatementKind::Assign(one, other) | StatementKind::Augment(one, _, other) => {
            makes_function(one) || makes_function(other)
        }
        StatementKind::If(branches, otherwise) => {
            let in_branch =
                |(condition, body): &(Expr, Vec<Statement>)| makes_function(condition) || has_functions(body);
            branches.iter().any(in_branch) || has_functions(otherwise)
        }
        StatementKind::For(target, items, body) => {
            makes_function(target) || makes_function(items) || has_functions(body)
        }
        StatementKind::Return(value) => value.as_ref().is_some_and(makes_function),
        StatementKind::Break | StatementKind::Continue | StatementKind::Pass => false,
    })
}

fn makes_function(expr: &Expr) -> bool {
    let any = |parts: &[Expr]| parts.iter().any(makes_function);
    match &expr.kind {
        ExprKind::Lambda(_) => true,
        ExprKind::Name(_) | ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Text(_) => false,
        ExprKind::List(parts) | ExprKind::Tuple(parts) => any(parts),
        ExprKind::Dict(entries) => {
            entries.iter().any(|(key, value)| makes_function(key) || makes_function(value))
        }
        ExprKind::Comprehension(comprehension) => {
            comprehension.key.as_ref().is_some_and(makes_function)
                || makes_function(&comprehension.value)
                || comprehension.clauses.iter().any(|clause| match clause {
                    Clause::For(target, items) => makes_function(target) || makes_function(items),
                    Clause::If(condition) => makes_function(condition),
                })
        }
        ExprKind::Unary(_, operand) | ExprKind::Attribute(operand, _) => makes_function(operand),
        ExprKind::Binary(_, one, other)
        | ExprKind::And(one, other)
        | ExprKind::Or(one, other)
        | ExprKind::Index(one, other) => makes_function(one) || makes_function(other),
        ExprKind::Conditional(parts) => any(&**parts),
        ExprKind::Slice(of, parts) => makes_function(of) || parts.iter().flatten().any(makes_function),
        ExprKind::Call(call) => {
            makes_function(&call.function)
                || call.arguments.iter().any(|argument| match argument {
                    Argument::Positional(value)
                    | Argument::Named(_, value)
                    | Argument::Items(value)
                    | Argument::Entries(value) => makes_function(value),
                })
        }
    }
}
