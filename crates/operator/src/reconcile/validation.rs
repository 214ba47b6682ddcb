//! The result of validating an object.

use super::{Condition, Problem};

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

    /// The problem that is reported first.
    pub fn blocked(&self) -> Option<&Problem> {
        self.problems.first()
    }

    /// The condition of this type.
    pub fn condition(&self, type_: &str) -> Option<&Condition> {
        self.conditions.iter().find(|condition| condition.type_ == type_)
    }
}
