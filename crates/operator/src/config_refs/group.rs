//! The MCPGroup that an object refers to.

use skep_api::{
    conditions::GroupRefValidated,
    kinds::{MCPGroup, MCPGroupPhase},
};

use crate::{
    reconcile::{Condition, Problem, Validation},
    resources::ResolvedRef,
};

impl ResolvedRef<MCPGroup> {
    /// The condition of a member. A member runs without its group, too.
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
            Some(unusable) => validation.fail(problem(unusable).transient()),
            None => validation.add(self.membership()),
        }
    }

    /// Adds the condition of a virtual server, or its problem.
    pub(crate) fn validate_for_virtual_server(&self, validation: &mut Validation) {
        let message = format!("the members of MCPGroup {} are served", self.name);
        match self.unusable() {
            Some(unusable @ (GroupRefValidated::GroupRefNotReady, _)) => {
                validation.fail(problem(unusable).transient());
            }
            Some(unusable) => validation.fail(problem(unusable)),
            None => validation.add(Condition::new(GroupRefValidated::GroupRefValid, message)),
        }
    }

    /// Why the group cannot be used. One without a status can.
    fn unusable(&self) -> Option<(GroupRefValidated, String)> {
        let group = match self.checked(|_| Vec::new()) {
            Ok(group) => group,
            Err(error) => return Some((GroupRefValidated::GroupRefNotFound, error.message().to_owned())),
        };
        let is_failed = group.status.as_ref().and_then(|status| status.phase) == Some(MCPGroupPhase::Failed);
        let message = format!("MCPGroup {} is not ready", self.name);
        is_failed.then_some((GroupRefValidated::GroupRefNotReady, message))
    }
}

fn problem((reason, message): (GroupRefValidated, String)) -> Problem {
    Problem::of("groupRef", message).reported_as(reason)
}
