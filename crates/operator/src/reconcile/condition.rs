//! Conditions, as controllers state them.

use std::borrow::Cow;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition as StatusCondition, Time};
use skep_api::{
    conditions::{CONDITIONS, Ready, Reason},
    kinds::kinds_of_reason,
};

/// The longest message, in bytes. It may quote what users wrote, and the API server accepts no more than 32,768 characters.
const LONGEST: usize = 8192;

/// A message that the API server accepts.
pub(super) fn cut(mut message: String) -> String {
    if message.len() > LONGEST {
        message.truncate(message.floor_char_boundary(LONGEST));
        message.push('…');
    }
    message
}

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
        Self { type_: type_.into(), is_met: met, reason, message: cut(message.into()) }
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

/// While old pods serve and new ones are started, the object is as ready as it was, and the condition is about the old spec:
/// `kubectl wait --for=condition=Ready` compares its generation.
pub(super) fn keep_generation_of_ready(now: &mut [StatusCondition], before: &[StatusCondition]) {
    let is_ready =
        |condition: &&StatusCondition| condition.type_ == Ready::TYPE && condition.status == "True";
    let before = before.iter().find(is_ready);
    let now = now.iter_mut().find(|condition| is_ready(&&**condition));
    if let (Some(before), Some(now)) = (before, now) {
        now.observed_generation = before.observed_generation;
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::jiff::Timestamp;

    use super::*;

    #[test]
    fn ready_is_about_the_old_spec_while_its_pods_serve() {
        let ready = |reason: Ready, generation| {
            let condition = Condition::new(reason, "");
            status_conditions(vec![condition], &[], generation, &Time(Timestamp::UNIX_EPOCH))
        };
        let generation = |before: &[StatusCondition], mut now: Vec<StatusCondition>| {
            keep_generation_of_ready(&mut now, before);
            now[0].observed_generation
        };
        assert_eq!(generation(&ready(Ready::Ready, 1), ready(Ready::Ready, 2)), Some(1));
        assert_eq!(generation(&ready(Ready::NotReady, 1), ready(Ready::Ready, 2)), Some(2));
        assert_eq!(generation(&ready(Ready::Ready, 1), ready(Ready::NotReady, 2)), Some(2));
        assert_eq!(generation(&[], ready(Ready::Ready, 2)), Some(2));
    }

    #[test]
    fn no_message_is_longer_than_the_api_server_accepts() {
        for unit in ["a", "ü", "語"] {
            let message = Condition::new(Ready::NotReady, unit.repeat(40_000)).message;
            assert!(message.chars().count() <= 32_768 && message.ends_with('…'), "{}", message.len());
        }
        assert_eq!(Condition::new(Ready::NotReady, "short").message, "short");
    }
}
