//! Which policies can apply to a request, by their scopes.
//!
//! Cedar evaluates the scope of a policy before its condition: where the scope does not match, the policy has no effect and
//! cannot fail, so it need not be evaluated. A policy whose scope may match is always included, and Cedar decides.

mod sets;

use std::{collections::HashSet, sync::Arc};

use cedar_policy::{
    ActionConstraint, Entities, EntityTypeName, EntityUid, Policy, PolicySet, PrincipalConstraint,
    ResourceConstraint,
};
use sets::Sets;

/// The policies of a document with their scopes.
pub(crate) struct Scopes {
    scopes: Vec<Scope>,
    /// The resources that a scope names with `==`. All others of one type are in the same scopes.
    named: HashSet<EntityUid>,
    sets: Sets,
}

/// The policies that can apply to a request.
#[derive(Clone)]
pub(crate) enum Slice {
    /// All of them. That is also what most of them are taken for: a set of their own would be as large.
    Whole,
    /// Those at these places.
    Part(Arc<[usize]>),
}

struct Scope {
    policy: Policy,
    principal: PrincipalConstraint,
    action: ActionConstraint,
    resource: ResourceConstraint,
}

/// An entity of a request, with what is known of its ancestors before the resource is.
pub(crate) struct Ancestry<'a> {
    uid: &'a EntityUid,
    entities: &'a Entities,
    is_certain: bool,
}

impl<'a> Ancestry<'a> {
    /// A request gives its resource further parents. So the ancestors of what is in a resource are known only then.
    pub(crate) fn new(uid: &'a EntityUid, entities: &'a Entities, resources: &[EntityTypeName]) -> Self {
        let is_certain = entities
            .ancestors(uid)
            .is_some_and(|mut ancestors| ancestors.all(|ancestor| !resources.contains(ancestor.type_name())));
        Self { uid, entities, is_certain }
    }

    fn may_be_in(&self, group: &EntityUid) -> bool {
        !self.is_certain || self.uid == group || self.entities.is_ancestor_of(group, self.uid)
    }
}

impl Scopes {
    pub(crate) fn of(policies: &PolicySet) -> Self {
        let scopes: Vec<_> = policies.policies().map(Scope::of).collect();
        let named = scopes.iter().filter_map(|scope| match &scope.resource {
            ResourceConstraint::Eq(uid) => Some(uid.clone()),
            _ => None,
        });
        Self { named: named.collect(), scopes, sets: Sets::default() }
    }

    /// The places of the policies that can apply to requests of a caller.
    pub(crate) fn of_caller(&self, caller: &Ancestry<'_>) -> Vec<usize> {
        let scopes = self.scopes.iter().enumerate();
        scopes.filter(|(_, scope)| scope.may_match_principal(caller)).map(|(place, _)| place).collect()
    }

    /// Whether a scope names this resource.
    pub(crate) fn names(&self, resource: &EntityUid) -> bool {
        self.named.contains(resource)
    }

    /// Those of a caller's policies that can apply to this action and resource.
    pub(crate) fn slice(&self, of_caller: &[usize], action: &Ancestry<'_>, resource: &EntityUid) -> Slice {
        let may_match = |scope: &Scope| scope.may_match_action(action) && scope.may_match_resource(resource);
        let places = of_caller.iter().copied();
        let places: Vec<_> = places.filter(|&place| self.scopes.get(place).is_some_and(may_match)).collect();
        if 2 * places.len() > self.scopes.len() { Slice::Whole } else { Slice::Part(places.into()) }
    }

    /// The policies of a slice, or nothing if these are all.
    pub(crate) fn set(&self, slice: &Slice) -> Option<Arc<PolicySet>> {
        let Slice::Part(places) = slice else { return None };
        self.sets.of(places, || {
            let scopes = places.iter().filter_map(|&place| self.scopes.get(place));
            PolicySet::from_policies(scopes.map(|scope| scope.policy.clone())).ok()
        })
    }
}

impl Scope {
    fn of(policy: &Policy) -> Self {
        Self {
            principal: policy.principal_constraint(),
            action: policy.action_constraint(),
            resource: policy.resource_constraint(),
            policy: policy.clone(),
        }
    }

    fn may_match_principal(&self, caller: &Ancestry<'_>) -> bool {
        match &self.principal {
            PrincipalConstraint::Any => true,
            PrincipalConstraint::Eq(uid) => caller.uid == uid,
            PrincipalConstraint::Is(type_) => caller.uid.type_name() == type_,
            PrincipalConstraint::In(group) => caller.may_be_in(group),
            PrincipalConstraint::IsIn(type_, group) => {
                caller.uid.type_name() == type_ && caller.may_be_in(group)
            }
        }
    }

    fn may_match_action(&self, action: &Ancestry<'_>) -> bool {
        match &self.action {
            ActionConstraint::Any => true,
            ActionConstraint::Eq(uid) => action.uid == uid,
            ActionConstraint::In(groups) => groups.iter().any(|group| action.may_be_in(group)),
        }
    }

    fn may_match_resource(&self, resource: &EntityUid) -> bool {
        match &self.resource {
            ResourceConstraint::Any | ResourceConstraint::In(_) => true,
            ResourceConstraint::Eq(uid) => resource == uid,
            ResourceConstraint::Is(type_) | ResourceConstraint::IsIn(type_, _) => {
                resource.type_name() == type_
            }
        }
    }
}
