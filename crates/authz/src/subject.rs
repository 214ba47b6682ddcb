//! A caller, ready for decisions.

use std::sync::Arc;

use cedar_policy::{Context, EntityUid, Request, Response};
use serde_json::{Map, Value};

use crate::{
    Action, Decision, Denial, Principal, Resource,
    attributes::{Attributes, arguments},
    caller::Caller,
    compiled::{Compiled, decision},
    recent::{Key, Recent},
    scopes::Slice,
};

/// The decisions without arguments that are kept for one caller.
const DECISIONS: usize = 256;
/// The resources, and the slices of the policies, that are kept for one caller. They take much more memory than a decision.
const RESOURCES: usize = 16;
/// About how many bytes a decision takes, with its key.
const DECISION: usize = 256;
/// A denial that names more policies is not kept.
const NAMED: usize = 8;

/// A caller, ready for decisions. It keeps what it computes for one, within limits, so that others with the same resource are
/// cheap. Nothing of it changes a decision: the same caller, action, resource and arguments always have the same.
pub struct Subject {
    compiled: Arc<Compiled>,
    caller: Result<Caller, Denial>,
    /// Decisions that depend on no argument.
    decisions: Recent<Key, Decision>,
    targets: Recent<Key, Arc<Target>>,
    /// The policies for an action on a resource that a scope names, or on any other.
    slices: Recent<(Action, Option<EntityUid>), Slice>,
}

/// What a caller's request is about, with the policies that can apply to it.
struct Target {
    resource: EntityUid,
    entities: cedar_policy::Entities,
    policies: Slice,
}

impl Subject {
    pub(crate) fn new(compiled: Arc<Compiled>, principal: &Principal<'_>) -> Self {
        let caller = Caller::new(&compiled, principal);
        Self {
            compiled,
            caller,
            decisions: Recent::new(DECISIONS),
            targets: Recent::new(RESOURCES),
            slices: Recent::new(RESOURCES),
        }
    }

    /// About how many bytes of memory it takes, with what it keeps.
    pub fn weight(&self) -> usize {
        let caller = self.caller.as_ref();
        let caller = caller.map_or(0, |caller| caller.weight(self.targets.len(), self.slices.len()));
        caller + self.decisions.len() * DECISION
    }

    /// Decides whether the caller may do something. Items of a list have no arguments.
    pub fn decide(
        &self,
        action: Action,
        resource: &Resource<'_>,
        arguments: Option<&Map<String, Value>>,
    ) -> Decision {
        let given = self.given(arguments);
        if !given.is_empty() {
            return decided(self.with_arguments(action, resource, given));
        }
        let key = Key::of(action, resource);
        if let Some(decision) = key.as_ref().and_then(|key| self.decisions.get(key)) {
            return decision;
        }
        let decision = decided(self.without_arguments(action, resource));
        if let Some(key) = key.filter(|_| is_small(&decision)) {
            self.decisions.put(key, decision.clone());
        }
        decision
    }

    /// What the policies have in response to a request.
    pub(crate) fn response(
        &self,
        action: Action,
        resource: &Resource<'_>,
        arguments: Option<&Map<String, Value>>,
    ) -> Result<Response, Denial> {
        let given = self.given(arguments);
        if given.is_empty() {
            self.without_arguments(action, resource)
        } else {
            self.with_arguments(action, resource, given)
        }
    }

    /// The arguments that policies read.
    fn given(&self, given: Option<&Map<String, Value>>) -> Attributes {
        given.map(|given| arguments(given, &self.compiled.reads)).unwrap_or_default()
    }

    fn without_arguments(&self, action: Action, resource: &Resource<'_>) -> Result<Response, Denial> {
        let caller = self.caller()?;
        let target = self.target(caller, action, resource, Attributes::new())?;
        self.evaluate(caller, action, &target, caller.context.clone())
    }

    fn with_arguments(
        &self,
        action: Action,
        resource: &Resource<'_>,
        given: Attributes,
    ) -> Result<Response, Denial> {
        let caller = self.caller()?;
        let context = caller.context.clone().merge(given.clone()).map_err(|_| Denial::Contradictory)?;
        // A resource whose arguments no policy reads is the same for all of them.
        let target = if self.compiled.reads.of_resource {
            Arc::new(self.target(caller, action, resource, given)?)
        } else {
            self.kept_target(caller, action, resource)?
        };
        self.evaluate(caller, action, &target, context)
    }

    fn caller(&self) -> Result<&Caller, Denial> {
        self.caller.as_ref().map_err(Clone::clone)
    }

    fn kept_target(
        &self,
        caller: &Caller,
        action: Action,
        resource: &Resource<'_>,
    ) -> Result<Arc<Target>, Denial> {
        let key = Key::of(action, resource);
        if let Some(target) = key.as_ref().and_then(|key| self.targets.get(key)) {
            return Ok(target);
        }
        let target = Arc::new(self.target(caller, action, resource, Attributes::new())?);
        if let Some(key) = key {
            self.targets.put(key, target.clone());
        }
        Ok(target)
    }

    fn target(
        &self,
        caller: &Caller,
        action: Action,
        resource: &Resource<'_>,
        given: Attributes,
    ) -> Result<Target, Denial> {
        let entities = caller.with_resource(&self.compiled, action, resource, given)?;
        let resource = self.compiled.types.resource(action, resource.id);
        Ok(Target { policies: self.policies(caller, action, &resource), resource, entities })
    }

    fn policies(&self, caller: &Caller, action: Action, resource: &EntityUid) -> Slice {
        let key = (action, self.compiled.scopes.names(resource).then(|| resource.clone()));
        self.slices.get(&key).unwrap_or_else(|| {
            let slice = caller.slice(&self.compiled, action, resource);
            self.slices.put(key, slice.clone());
            slice
        })
    }

    fn evaluate(
        &self,
        caller: &Caller,
        action: Action,
        target: &Target,
        context: Context,
    ) -> Result<Response, Denial> {
        let action = self.compiled.types.action(action);
        let request = Request::new(caller.uid.clone(), action, target.resource.clone(), context, None)
            .map_err(|_| Denial::Contradictory)?;
        Ok(self.compiled.evaluate(&request, &target.policies, &target.entities))
    }
}

fn decided(response: Result<Response, Denial>) -> Decision {
    response.map_or_else(Decision::Deny, |response| decision(&response))
}

fn is_small(decision: &Decision) -> bool {
    !matches!(decision, Decision::Deny(Denial::Forbidden(policies)) if policies.len() > NAMED)
}

#[cfg(test)]
mod tests;
