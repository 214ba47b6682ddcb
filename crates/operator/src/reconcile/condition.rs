//! Conditions, as controllers state them.

use std::borrow::Cow;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition as StatusCondition, Time};
use skep_api::{
    conditions::{CONDITIONS, Ready, Reason},
    kinds::kinds_of_reason,
};

/// A condition without its times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// The type.
    pub type_: Cow<'static, str>,
    /// Whether its status is True.
    pub is_met: bool,
    /// Why, in one word.
    pub reason: &'static str,
    /// Why, in a sentence.
    pub message: String,
}

impl Condition {
    /// The condition with this reason, which also decides whether it is met.
    pub fn new(reason: impl Into<Reason>, message: impl Into<String>) -> Self {
        let Reason { type_, reason, met, .. } = reason.into();
        Self { type_: type_.into(), is_met: met, reason, message: message.into() }
    }

    /// The same condition of one of many, whose name becomes part of its type.
    #[must_use]
    pub fn named(self, name: &str) -> Self {
        Self { type_: format!("{}{name}", self.type_).into(), ..self }
    }

    /// Whether a status has this condition already, whenever it came up.
    pub fn is_in(&self, conditions: &[StatusCondition]) -> bool {
        self.earlier(conditions).is_some_and(|old| old.message == self.message)
    }

    /// The condition in a status that differs at most in its message.
    pub(super) fn earlier<'a>(&self, conditions: &'a [StatusCondition]) -> Option<&'a StatusCondition> {
        conditions.iter().find(|old| {
            old.type_ == self.type_ && old.reason == self.reason && old.status == status(self.is_met)
        })
    }

    /// Whether the API declares this condition for the kind. Undeclared conditions would be missing from the
    /// documentation.
    pub(super) fn is_declared(&self, kind: &str) -> bool {
        let of_type = CONDITIONS.iter().filter(|declared| match declared.name.strip_suffix('-') {
            Some(prefix) => self.type_.strip_prefix(prefix).is_some_and(|name| name.starts_with('-')),
            // `Ready` may have the reason of another condition.
            None => self.type_ == declared.name || self.type_ == Ready::TYPE,
        });
        let mut reasons =
            of_type.flat_map(|declared| declared.reasons.iter().map(move |entry| (declared, entry)));
        reasons.any(|(declared, entry)| {
            entry.reason.reason == self.reason && kinds_of_reason(declared, entry).contains(&kind)
        })
    }
}

const fn status(is_met: bool) -> &'static str {
    if is_met { "True" } else { "False" }
}

/// The conditions for a status. One whose status did not change keeps its time.
pub(super) fn status_conditions(
    conditions: Vec<Condition>,
    before: &[StatusCondition],
    generation: i64,
    now: &Time,
) -> Vec<StatusCondition> {
    let with_times = |condition: Condition| {
        let status = status(condition.is_met);
        let unchanged = before.iter().find(|old| old.type_ == condition.type_ && old.status == status);
        StatusCondition {
            last_transition_time: unchanged.map_or(now, |old| &old.last_transition_time).clone(),
            message: condition.message,
            observed_generation: Some(generation),
            reason: condition.reason.into(),
            status: status.into(),
            type_: condition.type_.into_owned(),
        }
    };
    conditions.into_iter().map(with_times).collect()
}
