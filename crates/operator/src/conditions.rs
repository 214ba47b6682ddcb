//! Conditions as a controller states them.

use std::borrow::Cow;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

/// One condition, before it is known when it came about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The type of the condition.
    pub type_: Cow<'static, str>,
    /// Whether it holds.
    pub holds: bool,
    /// Why, in one word.
    pub reason: String,
    /// Why, in a sentence.
    pub message: String,
}

impl Finding {
    /// Something that is the case.
    pub fn yes(
        type_: impl Into<Cow<'static, str>>,
        reason: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self { type_: type_.into(), holds: true, reason: reason.into(), message: message.into() }
    }

    /// Something that is not the case.
    pub fn no(
        type_: impl Into<Cow<'static, str>>,
        reason: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self { holds: false, ..Self::yes(type_, reason, message) }
    }
}

/// The findings as conditions. One that stood before with the same status keeps its time.
pub fn conditions(
    findings: Vec<Finding>,
    before: &[Condition],
    generation: i64,
    now: &Time,
) -> Vec<Condition> {
    let condition = |finding: Finding| {
        let status = if finding.holds { "True" } else { "False" };
        let same = |old: &&Condition| old.type_ == finding.type_ && old.status == status;
        Condition {
            last_transition_time: before
                .iter()
                .find(same)
                .map_or(now, |old| &old.last_transition_time)
                .clone(),
            message: finding.message,
            observed_generation: Some(generation),
            reason: finding.reason,
            status: status.into(),
            type_: finding.type_.into_owned(),
        }
    };
    findings.into_iter().map(condition).collect()
}
