//! The attributes that the conditions of a policy read, test for and compare.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{
    Vocabulary,
    test::{Test, Variable},
};
use crate::Hints;

/// An attribute of one of a request's variables.
type Attribute = (Variable, String);

/// All of a policy's conditions.
#[derive(Default)]
pub(super) struct Condition {
    /// The attributes that are read.
    reads: BTreeSet<Attribute>,
    /// The attributes that `has` tests for.
    guards: BTreeSet<Attribute>,
    tests: Vec<Test>,
    texts: Vec<String>,
}

impl Condition {
    /// Collects the attributes of an expression and its operands.
    pub(super) fn visit(&mut self, expression: &Value) {
        match expression {
            Value::Array(items) => items.iter().for_each(|item| self.visit(item)),
            Value::Object(fields) => {
                for (operator, operands) in fields.iter().filter(|(operator, _)| *operator != "Value") {
                    self.collect(operator, operands);
                    self.visit(operands);
                }
            }
            _ => {}
        }
    }

    fn collect(&mut self, operator: &str, operands: &Value) {
        match operator {
            "." => self.reads.extend(attribute(operands)),
            "has" => self.guards.extend(attribute(operands)),
            "==" | "!=" | "<" | "<=" | ">" | ">=" => self.texts.extend(integer(operator, operands)),
            _ => {}
        }
        self.tests.extend(Test::in_condition(operator, operands));
    }

    pub(super) fn warnings(self, vocabulary: &Vocabulary<'_>) -> Vec<String> {
        let mut texts: Vec<String> = self.tests.iter().filter_map(|test| test.warning(vocabulary)).collect();
        texts.extend(self.texts);
        for attribute in self.reads.difference(&self.guards) {
            let (variable, name) = (attribute.0.as_str(), &attribute.1);
            if !exists(attribute, vocabulary) {
                texts.push(format!("{variable}.{name} never exists, and reading it denies the request"));
            } else if name.starts_with("arg_") {
                texts.push(format!(
                    "it reads {variable}.{name} without `{variable} has {name}`: requests without that argument are \
                     denied, and the items of lists have none"
                ));
            }
        }
        texts
    }
}

/// Whether a request may have the attribute.
fn exists((variable, name): &Attribute, vocabulary: &Vocabulary<'_>) -> bool {
    let claim = name.starts_with("claim_") || name.starts_with("claimset_");
    let argument = name.starts_with("arg_");
    let usual = match variable {
        Variable::Principal => claim,
        Variable::Action => name == "operation",
        Variable::Resource => {
            let standard = ["name", "operation", "feature", "uri"].contains(&name.as_str());
            standard || argument || Hints::NAMES.contains(&name.as_str())
        }
        Variable::Context => claim || argument,
    };
    usual || vocabulary.entities.give(variable.types(), name)
}

/// The attribute that `left.attr` or `left has attr` is about.
fn attribute(operands: &Value) -> Option<Attribute> {
    let name = match operands.get("attr")? {
        // `has a.b` tests for a first.
        Value::Array(path) => path.first()?,
        name => name,
    };
    Some((Variable::of(operands.get("left")?)?, name.as_str()?.to_owned()))
}

/// A claim or an argument that is compared with an integer.
fn integer(operator: &str, operands: &Value) -> Option<String> {
    let read = |side: &str| {
        let (variable, name) = attribute(operands.get(side)?.get(".")?)?;
        let from_request = name.starts_with("arg_") || name.starts_with("claim_");
        from_request.then(|| format!("{}.{name}", variable.as_str()))
    };
    let number = |side: &str| operands.get(side)?.get("Value")?.as_i64();
    let ((read, number), swapped) =
        match (read("left").zip(number("right")), read("right").zip(number("left"))) {
            (Some(sides), _) => (sides, false),
            (None, Some(sides)) => (sides, true),
            (None, None) => return None,
        };
    let decimal = format!("decimal(\"{number}.0\")");
    let method = match (operator, swapped) {
        ("<", false) | (">", true) => "lessThan",
        ("<=", false) | (">=", true) => "lessThanOrEqual",
        (">", false) | ("<", true) => "greaterThan",
        (">=", false) | ("<=", true) => "greaterThanOrEqual",
        _ => {
            return Some(format!(
                "{read} never equals {number}, as numbers are decimals: use {read} {operator} {decimal}"
            ));
        }
    };
    Some(format!(
        "to compare {read} with {number} fails, as numbers are decimals: use {read}.{method}({decimal})"
    ))
}
