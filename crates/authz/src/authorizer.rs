//! The authorizer.

use cedar_policy::{Context, Entity, EntityTypeName, EntityUid, PolicyId, Request, Response};
use miette::Diagnostic;
use serde_json::{Map, Value};
use skep_config::run_config::Cedar;

use crate::{
    Action, Decision, Denial, Error, Feature, Principal, Resource,
    attributes::{Attributes, arguments, hints, standard},
    claims::claims,
    entities::{Entities, group_type, type_name, uid},
    groups::groups,
    place::short,
    policies::Policies,
    reads::Reads,
    size,
};

/// How much of a policy a denial quotes.
const QUOTE: usize = 80;

/// Parsed policies. They are parsed once and shared by all requests.
pub struct Authorizer {
    engine: cedar_policy::Authorizer,
    policies: Policies,
    reads: Reads,
    /// The entities of the document.
    entities: Entities,
    /// Those that every decision needs: the actions, the server, and what conditions name.
    base: cedar_policy::Entities,
    /// The actions, which have more attributes than the document gives them.
    actions: Vec<EntityUid>,
    options: Cedar,
    types: Types,
    server: Option<EntityUid>,
}

struct Types {
    client: EntityTypeName,
    group: EntityTypeName,
    action: EntityTypeName,
    features: [EntityTypeName; 3],
}

impl Types {
    fn new(group: EntityTypeName) -> Option<Self> {
        let [tool, prompt, resource] = Feature::ALL.map(|feature| type_name(feature.entity_type()));
        Some(Self {
            client: type_name("Client")?,
            group,
            action: type_name("Action")?,
            features: [tool?, prompt?, resource?],
        })
    }

    fn resource(&self, action: Action, id: &str) -> EntityUid {
        let [tool, prompt, resource] = &self.features;
        let type_ = match action {
            Action::CallTool => tool,
            Action::GetPrompt => prompt,
            Action::ReadResource => resource,
        };
        uid(type_, id)
    }
}

impl Authorizer {
    /// Parses a document. Resources are in `MCP::"<server>"`, or have no parent if the name is empty.
    pub fn new(cedar: &Cedar, server: &str) -> Result<Self, Error> {
        let policies = Policies::parse(&cedar.policies)?;
        let entities = Entities::parse(&cedar.entities_json)?;
        let group = group_type(&cedar.group_entity_type)?;
        let types = Types::new(group).ok_or_else(|| Error::new("types", "cannot be written in Cedar"))?;
        let server = type_name("MCP").filter(|_| !server.is_empty()).map(|type_| uid(&type_, server));
        let reads = Reads::of(&policies)?;
        let mut actions = Vec::new();
        let mut base = entities.reachable(reads.entities.iter().chain(&server));
        for action in Feature::ALL.map(Feature::action) {
            let name = cedar_policy::RestrictedExpression::new_string(action.as_str().into());
            let uid = uid(&types.action, action.as_str());
            let attributes = Attributes::from([("operation".to_owned(), name)]);
            base.extend(entities.beyond(&uid, []));
            actions.extend(joined(&entities, uid, Attributes::new(), attributes, Vec::new()));
        }
        let uids = actions.iter().map(Entity::uid).collect();
        base.extend(actions);
        // The last of those with one uid counts.
        let base = cedar_policy::Entities::empty()
            .upsert_entities(base, None)
            .map_err(|error| Error::new("entities_json", error.to_string()))?;
        let options = Cedar { policies: Vec::new(), entities_json: String::new(), ..cedar.clone() };
        let engine = cedar_policy::Authorizer::new();
        Ok(Self { engine, reads, policies, entities, base, actions: uids, options, types, server })
    }

    /// Decides one request. For several requests of one caller, use [`Authorizer::subject`].
    pub fn decide(
        &self,
        principal: &Principal<'_>,
        action: Action,
        resource: &Resource<'_>,
        arguments: Option<&Map<String, Value>>,
    ) -> Decision {
        self.subject(principal).decide(action, resource, arguments)
    }

    /// The policies that decide a request, each by its name and its text: those that permit it, or those that forbid it.
    pub fn determining(
        &self,
        principal: &Principal<'_>,
        action: Action,
        resource: &Resource<'_>,
        arguments: Option<&Map<String, Value>>,
    ) -> Vec<(String, String)> {
        let subject = self.subject(principal);
        let Ok(caller) = &subject.caller else { return Vec::new() };
        let Ok((request, entities)) = subject.request(caller, action, resource, arguments) else {
            return Vec::new();
        };
        let response = self.evaluate(&request, &entities);
        let mut names: Vec<_> = response.diagnostics().reason().collect();
        names.sort_by_key(|id| order(id.as_ref()));
        let text = |id: &PolicyId| self.policies.set.policy(id).map(ToString::to_string).unwrap_or_default();
        names.into_iter().map(|id| (id.to_string(), text(id))).collect()
    }

    /// Whether a policy reads arguments. If not, requests can be decided without.
    pub fn reads_arguments(&self) -> bool {
        !self.reads.is_empty()
    }

    /// A caller. Their entities are computed once for any number of decisions.
    pub fn subject(&self, principal: &Principal<'_>) -> Subject<'_> {
        Subject { authorizer: self, caller: Caller::new(self, principal) }
    }

    fn evaluate(&self, request: &Request, entities: &cedar_policy::Entities) -> Response {
        let decide = || self.engine.is_authorized(request, &self.policies.set, entities);
        size::with_stack(self.policies.steps, decide)
    }

    fn response(&self, request: &Request, entities: &cedar_policy::Entities) -> Decision {
        let response = self.evaluate(request, entities);
        let diagnostics = response.diagnostics();
        let allowed = response.decision() == cedar_policy::Decision::Allow;
        if !allowed {
            let mut forbidding: Vec<_> = diagnostics.reason().map(ToString::to_string).collect();
            if !forbidding.is_empty() {
                forbidding.sort_by_key(|id| order(id));
                return Decision::Deny(Denial::Forbidden(forbidding));
            }
        }
        let failures = diagnostics.errors().map(failure);
        match failures.min_by_key(|(policy, _)| order(policy)) {
            Some((policy, at)) => Decision::Deny(Denial::Failed { policy, at }),
            None if allowed => Decision::Allow,
            None => Decision::Deny(Denial::NotPermitted),
        }
    }
}

/// A caller, ready for decisions.
pub struct Subject<'a> {
    authorizer: &'a Authorizer,
    caller: Result<Caller, Denial>,
}

/// The entities of a caller.
struct Caller {
    uid: EntityUid,
    context: Context,
    /// Those that every decision needs, the caller, and what policies can get to from it.
    entities: cedar_policy::Entities,
}

impl Caller {
    fn new(authorizer: &Authorizer, principal: &Principal<'_>) -> Result<Self, Denial> {
        if principal.subject.is_empty() {
            return Err(Denial::NoSubject);
        }
        let Cedar { group_claim_name, role_claim_name, multi_valued_claims, .. } = &authorizer.options;
        let types = &authorizer.types;
        let caller = uid(&types.client, principal.subject);
        let attributes = claims(principal.claims, multi_valued_claims);
        let groups = groups(principal.claims, group_claim_name, role_claim_name);
        let parents: Vec<_> = groups.into_iter().map(|group| uid(&types.group, group)).collect();
        let mut entities = authorizer.entities.beyond(&caller, &parents);
        entities.retain(|entity| !authorizer.actions.contains(&entity.uid()));
        let context = Context::from_pairs(attributes.clone()).map_err(|_| Denial::Contradictory)?;
        let entity = joined(&authorizer.entities, caller.clone(), Attributes::new(), attributes, parents);
        entities.push(entity.ok_or(Denial::Contradictory)?);
        let entities = with(&authorizer.base, entities)?;
        Ok(Self { uid: caller, context, entities })
    }
}

impl Subject<'_> {
    /// Decides whether the caller may do something. Items of a list have no arguments.
    pub fn decide(
        &self,
        action: Action,
        resource: &Resource<'_>,
        arguments: Option<&Map<String, Value>>,
    ) -> Decision {
        let caller = match &self.caller {
            Ok(caller) => caller,
            Err(denial) => return Decision::Deny(denial.clone()),
        };
        match self.request(caller, action, resource, arguments) {
            Ok((request, entities)) => self.authorizer.response(&request, &entities),
            Err(denial) => Decision::Deny(denial),
        }
    }

    fn request(
        &self,
        caller: &Caller,
        action: Action,
        resource: &Resource<'_>,
        given: Option<&Map<String, Value>>,
    ) -> Result<(Request, cedar_policy::Entities), Denial> {
        let Authorizer { types, entities, actions, server, reads, .. } = self.authorizer;
        let given = given.map(|given| arguments(given, reads)).unwrap_or_default();
        let context = caller.context.clone();
        let context = if given.is_empty() {
            context
        } else {
            context.merge(given.clone()).map_err(|_| Denial::Contradictory)?
        };
        let thing = types.resource(action, resource.id);
        let mut attributes = given;
        attributes.extend(standard(action, resource));
        let parents = server.iter().cloned().collect();
        let mut new = entities.beyond(&thing, []);
        // Those have more attributes than the document gives them.
        new.retain(|entity| entity.uid() != caller.uid && !actions.contains(&entity.uid()));
        let entity = joined(entities, thing.clone(), hints(action, resource), attributes, parents);
        let action = uid(&types.action, action.as_str());
        let request = Request::new(caller.uid.clone(), action, thing, context, None);
        new.push(entity.ok_or(Denial::Contradictory)?);
        Ok((request.map_err(|_| Denial::Contradictory)?, with(&caller.entities, new)?))
    }
}

/// An entity with the attributes that the document gives it, which override `weak` and are overridden by `strong`.
fn joined(
    entities: &Entities,
    uid: EntityUid,
    weak: Attributes,
    strong: Attributes,
    parents: Vec<EntityUid>,
) -> Option<Entity> {
    let known = entities.known(&uid);
    let mut attributes = weak;
    attributes.extend(known.into_iter().flat_map(|known| known.attributes.clone()));
    attributes.extend(strong);
    let parents = known.into_iter().flat_map(|known| known.parents.clone()).chain(parents);
    let parents = parents.collect();
    Entity::new(uid, attributes.into_iter().collect(), parents).ok()
}

/// The entities with these as well.
fn with(entities: &cedar_policy::Entities, new: Vec<Entity>) -> Result<cedar_policy::Entities, Denial> {
    entities.clone().upsert_entities(new, None).map_err(|_| Denial::Contradictory)
}

/// The policy that failed, and the part of its text that did. The message of the error may quote a token.
fn failure(error: &cedar_policy::AuthorizationError) -> (String, Option<String>) {
    let cedar_policy::AuthorizationError::PolicyEvaluationError(error) = error;
    let policy = error.policy_id().to_string();
    let label = error.labels().and_then(|mut labels| labels.next());
    let text = label.zip(error.source_code()).and_then(|(label, source)| {
        let span = source.read_span(label.inner(), 0, 0).ok()?;
        let text = std::str::from_utf8(span.data()).ok()?;
        Some(short(&text.split_whitespace().collect::<Vec<_>>().join(" "), QUOTE))
    });
    (policy, text)
}

/// The position of a policy in the document: `policy2` before `policy10`.
fn order(policy: &str) -> Vec<usize> {
    policy.trim_start_matches("policy").split('.').filter_map(|number| number.parse().ok()).collect()
}
