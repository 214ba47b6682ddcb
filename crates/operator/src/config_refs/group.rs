//! The MCPGroup that an object refers to.

use skep_api::{
    conditions::GroupRefValidated,
    kinds::{MCPGroup, MCPGroupPhase},
};

use crate::{
    reconcile::{Condition, Problem, Validation},
    resources::ResolvedRef,
};

const FIELD: &str = "groupRef";

impl ResolvedRef<MCPGroup> {
    /// The condition of a member, which runs without its group, too.
    pub(crate) fn membership(&self) -> Condition {
        match self.unusable() {
            Some((reason, message)) => Condition::new(reason, message),
            None => Condition::new(
                GroupRefValidated::GroupRefIsValid,
                format!("it is a member of MCPGroup {}", self.name),
            ),
        }
    }

    /// Adds the condition of an entry, or its problem: an entry exists for its group alone.
    pub(crate) fn validate_for_entry(&self, validation: &mut Validation) {
        match self.unusable() {
            Some((reason, message)) => {
                validation.fail(Problem::of(FIELD, message).reported_as(reason).transient());
            }
            None => validation.add(self.membership()),
        }
    }

    /// Adds the condition of a virtual server, or its problem.
    pub(crate) fn validate_for_virtual_server(&self, validation: &mut Validation) {
        match self.unusable() {
            Some((reason @ GroupRefValidated::GroupRefNotReady, message)) => {
                validation.fail(Problem::of(FIELD, message).reported_as(reason).transient());
            }
            Some((reason, message)) => validation.fail(Problem::of(FIELD, message).reported_as(reason)),
            None => validation.add(Condition::new(
                GroupRefValidated::GroupRefValid,
                format!("the members of MCPGroup {} are served", self.name),
            )),
        }
    }

    /// Why the group cannot be used. One without a status can.
    fn unusable(&self) -> Option<(GroupRefValidated, String)> {
        match self.checked(|_| Vec::new()) {
            Err(error) => Some((GroupRefValidated::GroupRefNotFound, error.message().to_owned())),
            Ok(group) => {
                let phase = group.status.as_ref().and_then(|status| status.phase);
                let message = format!("MCPGroup {} is not ready", self.name);
                (phase == Some(MCPGroupPhase::Failed))
                    .then_some((GroupRefValidated::GroupRefNotReady, message))
            }
        }
    }
}
