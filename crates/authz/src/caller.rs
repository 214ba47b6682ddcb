//! What decisions need of a caller and of a resource.

use cedar_policy::{Context, Entity, EntityUid};
use serde_json::{Map, Value};
use skep_config::run_config::Cedar;

use crate::{
    Action, Denial, Principal, Resource,
    attributes::{Attributes, hints, standard},
    claims::claims,
    compiled::Compiled,
    entities::uid,
    groups::groups,
    scopes::{Ancestry, Slice},
};

/// About how many bytes a value takes in memory beside its text, and an entity beside its attributes.
const NODE: usize = 128;

/// The entities of a caller.
pub(crate) struct Caller {
    pub(crate) uid: EntityUid,
    pub(crate) context: Context,
    /// Those that every decision needs, the caller, and what policies can get to from it.
    pub(crate) entities: cedar_policy::Entities,
    /// The places of the policies whose scope the caller may be in.
    policies: Vec<usize>,
    /// About how many bytes its claims take.
    claims_weight: usize,
}

impl Caller {
    pub(crate) fn new(compiled: &Compiled, principal: &Principal<'_>) -> Result<Self, Denial> {
        if principal.subject.is_empty() {
            return Err(Denial::NoSubject);
        }
        let Cedar { group_claim_name, role_claim_name, multi_valued_claims, .. } = &compiled.options;
        let types = &compiled.types;
        let caller = types.principal(principal);
        let attributes = claims(principal.claims, multi_valued_claims);
        let groups = groups(principal.claims, group_claim_name, role_claim_name);
        let parents: Vec<_> = groups.into_iter().map(|group| uid(&types.group, group)).collect();
        let mut entities = compiled.entities.beyond(&caller, &parents);
        entities.retain(|entity| !compiled.actions.contains(&entity.uid()));
        let context = Context::from_pairs(attributes.clone()).map_err(|_| Denial::Contradictory)?;
        let entity = compiled.entities.joined(caller.clone(), Attributes::new(), attributes, parents);
        entities.push(entity.ok_or(Denial::Contradictory)?);
        let entities = with(&compiled.base, entities)?;
        let policies =
            compiled.scopes.of_caller(&Ancestry::new(&caller, &entities, &compiled.types.features));
        // The claims are in the context and in the entity.
        let claims_weight = 2 * object_weight(principal.claims);
        Ok(Self { uid: caller, context, entities, policies, claims_weight })
    }

    /// About how many bytes it takes with the entities of so many requests, and with so many slices.
    pub(crate) fn weight(&self, requests: usize, slices: usize) -> usize {
        let entities = NODE * self.entities.len() * (1 + requests);
        self.claims_weight + entities + size_of::<usize>() * self.policies.len() * (1 + slices)
    }

    /// The policies that can apply to a request of this caller.
    pub(crate) fn slice(&self, compiled: &Compiled, action: Action, resource: &EntityUid) -> Slice {
        let action = compiled.types.action(action);
        let action = Ancestry::new(&action, &self.entities, &compiled.types.features);
        compiled.scopes.slice(&self.policies, &action, resource)
    }

    /// The entities of a request, with these attributes of the resource.
    pub(crate) fn with_resource(
        &self,
        compiled: &Compiled,
        action: Action,
        resource: &Resource<'_>,
        given: Attributes,
    ) -> Result<cedar_policy::Entities, Denial> {
        let Compiled { types, entities, actions, server, .. } = compiled;
        let uid = types.resource(action, resource.id);
        let mut attributes = given;
        attributes.extend(standard(action, resource));
        let parents = server.iter().cloned().collect();
        let mut new = entities.beyond(&uid, []);
        // Those have more attributes than the document gives them.
        new.retain(|entity| entity.uid() != self.uid && !actions.contains(&entity.uid()));
        let entity = entities.joined(uid, hints(action, resource), attributes, parents);
        new.push(entity.ok_or(Denial::Contradictory)?);
        with(&self.entities, new)
    }
}

/// The entities with these as well.
fn with(entities: &cedar_policy::Entities, new: Vec<Entity>) -> Result<cedar_policy::Entities, Denial> {
    entities.clone().upsert_entities(new, None).map_err(|_| Denial::Contradictory)
}

fn object_weight(object: &Map<String, Value>) -> usize {
    object.iter().map(|(name, value)| name.len() + weight(value)).sum()
}

fn weight(value: &Value) -> usize {
    NODE + match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(weight).sum(),
        Value::Object(fields) => object_weight(fields),
    }
}
