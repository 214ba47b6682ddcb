//! The rules that an expression must follow.
//!
//! What the interpreter would only report for a token is reported here: unknown names, functions
//! that do not exist, invalid patterns, and expressions that are never a boolean.

use cel::{
    IdedExpr,
    common::ast::{
        CallExpr, ComprehensionExpr, EntryExpr, Expr, LiteralValue,
        operators::{
            ADD, CONDITIONAL, DIVIDE, EQUALS, GREATER, GREATER_EQUALS, IN, INDEX, LESS, LESS_EQUALS,
            LOGICAL_AND, LOGICAL_NOT, LOGICAL_OR, MODULO, MULTIPLY, NEGATE, NOT_EQUALS, NOT_STRICTLY_FALSE,
            SUBSTRACT,
        },
    },
};
use regex::Regex;

use crate::place::short;

/// The only variable of an expression.
pub(super) const CLAIMS: &str = "claims";

/// How deep operators may be nested. A chain of `&&` or `||` counts once.
const DEPTH: usize = 256;
/// How deep loops may be nested. Each iterates over a list of a token.
const LOOPS: usize = 2;
/// How much of a name is quoted.
const NAME: usize = 40;

const TYPES: [&str; 10] =
    ["bool", "bytes", "double", "int", "list", "map", "null_type", "string", "type", "uint"];
const ARITHMETIC: [&str; 6] = [ADD, DIVIDE, MODULO, MULTIPLY, NEGATE, SUBSTRACT];
const LOGIC: [&str; 13] = [
    CONDITIONAL,
    EQUALS,
    GREATER,
    GREATER_EQUALS,
    IN,
    INDEX,
    LESS,
    LESS_EQUALS,
    LOGICAL_AND,
    LOGICAL_NOT,
    LOGICAL_OR,
    NOT_EQUALS,
    NOT_STRICTLY_FALSE,
];
/// Functions that never return a boolean.
const CONVERSIONS: [&str; 7] = ["bytes", "double", "int", "size", "string", "type", "uint"];
const FUNCTIONS: [&str; 3] = ["bool", "dyn", MATCHES];
const METHODS: [&str; 5] = ["contains", "endsWith", MATCHES, "size", "startsWith"];
const MATCHES: &str = "matches";

/// The nesting depth of the expression, if all of it is valid.
pub(super) fn depth(expression: &IdedExpr) -> Result<usize, String> {
    let mut walk = Walk::default();
    walk.visit(expression, 1)?;
    if never_boolean(expression) {
        return Err("it can be neither true nor false: compare it with something".into());
    }
    Ok(walk.deepest)
}

#[derive(Default)]
struct Walk<'a> {
    /// The variables of the enclosing loops.
    variables: Vec<&'a str>,
    loops: usize,
    deepest: usize,
}

impl<'a> Walk<'a> {
    fn visit(&mut self, expression: &'a IdedExpr, depth: usize) -> Result<(), String> {
        self.deepest = self.deepest.max(depth);
        if depth > DEPTH {
            return Err(format!("it nests deeper than {DEPTH} operators: write it shorter"));
        }
        match &expression.expr {
            Expr::Literal(_) => Ok(()),
            Expr::Ident(name) => self.name(name),
            Expr::Select(select) => self.visit(&select.operand, depth + 1),
            Expr::List(list) => list.elements.iter().try_for_each(|item| self.visit(item, depth + 1)),
            Expr::Map(map) => map.entries.iter().try_for_each(|entry| match &entry.expr {
                EntryExpr::MapEntry(entry) => {
                    self.visit(&entry.key, depth + 1)?;
                    self.visit(&entry.value, depth + 1)
                }
                EntryExpr::StructField(_) => Err("a map has keys, not fields".into()),
            }),
            Expr::Call(call) => self.call(call, depth),
            Expr::Comprehension(comprehension) => self.comprehension(comprehension, depth),
            Expr::Struct(object) => Err(format!(
                "there is no type {:?}: claims are lists and maps",
                short(&object.type_name, NAME)
            )),
            Expr::Unspecified => Err("there is no expression: write one over claims".into()),
        }
    }

    fn name(&self, name: &str) -> Result<(), String> {
        let known = name == CLAIMS || TYPES.contains(&name) || self.variables.contains(&name);
        if known {
            Ok(())
        } else {
            Err(format!("{:?} is not known: the only name is claims", short(name, NAME)))
        }
    }

    fn call(&mut self, call: &'a CallExpr, depth: usize) -> Result<(), String> {
        let (name, count) = (call.func_name.as_str(), call.args.len());
        let (known, expected) = match &call.target {
            Some(_) => (METHODS.contains(&name), if name == "size" { 0 } else { 1 }),
            None if ARITHMETIC.contains(&name) || LOGIC.contains(&name) => (true, count),
            None => {
                let known = CONVERSIONS.contains(&name) || FUNCTIONS.contains(&name);
                (known, if name == MATCHES { 2 } else { 1 })
            }
        };
        let shown = short(name, NAME);
        if !known {
            return Err(format!("there is no function {shown:?}{}", self.methods(call)));
        }
        if count != expected {
            return Err(format!("{shown} takes {expected} arguments, and not {count}"));
        }
        if let (MATCHES, Some(Expr::Literal(LiteralValue::String(pattern)))) =
            (name, call.args.last().map(|pattern| &pattern.expr))
        {
            let pattern = pattern.inner();
            let wrong = |_| format!("{:?} is no regular expression", short(pattern, NAME));
            Regex::new(pattern).map_err(wrong)?;
        }
        call.target.iter().try_for_each(|target| self.visit(target, depth + 1))?;
        call.args.iter().try_for_each(|argument| self.visit(argument, depth + 1))
    }

    /// The functions that exist.
    fn methods(&self, call: &CallExpr) -> String {
        match &call.target {
            Some(_) => format!(": values have {}", METHODS.join(", ")),
            None => format!(": there are {}, {}", FUNCTIONS.join(", "), CONVERSIONS.join(", ")),
        }
    }

    fn comprehension(&mut self, comprehension: &'a ComprehensionExpr, depth: usize) -> Result<(), String> {
        self.visit(&comprehension.iter_range, depth + 1)?;
        self.visit(&comprehension.accu_init, depth + 1)?;
        self.loops += 1;
        if self.loops > LOOPS {
            return Err(format!("it has more than {LOOPS} loops within each other: write it flatter"));
        }
        let outside = self.variables.len();
        self.variables.push(&comprehension.accu_var);
        self.variables.push(&comprehension.iter_var);
        self.variables.extend(comprehension.iter_var2.as_deref());
        for part in [&comprehension.loop_cond, &comprehension.loop_step, &comprehension.result] {
            self.visit(part, depth + 1)?;
        }
        self.variables.truncate(outside);
        self.loops -= 1;
        Ok(())
    }
}

/// Whether an expression is never a boolean.
fn never_boolean(expression: &IdedExpr) -> bool {
    match &expression.expr {
        Expr::Literal(literal) => !matches!(literal, LiteralValue::Boolean(_)),
        Expr::List(_) | Expr::Map(_) => true,
        Expr::Ident(name) => name == CLAIMS,
        Expr::Call(CallExpr { func_name, args, .. }) => match (func_name.as_str(), args.as_slice()) {
            (CONDITIONAL, [_, yes, no]) => never_boolean(yes) && never_boolean(no),
            (name, _) => ARITHMETIC.contains(&name) || CONVERSIONS.contains(&name),
        },
        // The result of map and filter is always a list.
        Expr::Comprehension(comprehension) => matches!(comprehension.accu_init.expr, Expr::List(_)),
        _ => false,
    }
}
