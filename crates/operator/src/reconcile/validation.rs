//! The result of validating an object.

use skep_config::FieldError;

use super::{Condition, Problem};

/// A validation, and what it has built if there are no problems. If there are, the first.
pub type Validated<V> = (Validation, Result<V, Problem>);

/// The conditions of an object that are known before anything is written, and the problems that keep it from being
/// applied.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Validation {
    /// The conditions, one of a type at most.
    pub conditions: Vec<Condition>,
    /// The problems, the most important first.
    pub problems: Vec<Problem>,
}

impl Validation {
    /// Adds a condition, unless there is one of its type.
    pub fn add(&mut self, condition: impl Into<Option<Condition>>) {
        if let Some(condition) = condition.into()
            && !self.conditions.iter().any(|other| other.type_ == condition.type_)
        {
            self.conditions.push(condition);
        }
    }

    /// Adds a problem, and the condition that reports it. `Ready` is left to the status.
    pub fn fail(&mut self, problem: Problem) {
        if let Some(reason) =
            problem.reason.filter(|reason| reason.type_ != skep_api::conditions::Ready::TYPE)
        {
            self.add(Condition::new(reason, problem.to_string()));
        }
        self.problems.push(problem);
    }

    /// The value of a check that passes. The problem of one that fails is added.
    pub fn ok<V>(&mut self, checked: Result<V, Problem>) -> Option<V> {
        checked.map_err(|problem| self.fail(problem)).ok()
    }

    /// Ends the validation. `build` builds what a valid object has; its error is one more problem.
    pub fn finish<V>(mut self, build: impl FnOnce() -> Result<V, FieldError>) -> Validated<V> {
        if let Some(first) = self.problems.first().cloned() {
            return (self, Err(first));
        }
        let built = build().map_err(Problem::new);
        if let Err(problem) = &built {
            self.fail(problem.clone());
        }
        (self, built)
    }

    /// The condition of this type.
    pub fn condition(&self, type_: &str) -> Option<&Condition> {
        self.conditions.iter().find(|condition| condition.type_ == type_)
    }
}
