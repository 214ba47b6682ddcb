//! A document, ready for decisions.

use cedar_policy::{Entity, EntityTypeName, EntityUid, EvaluationError, Request, Response};
use miette::Diagnostic;
use skep_config::run_config::Cedar;

use crate::{
    Action, Decision, Denial, Error, Feature, Principal, PrincipalKind,
    attributes::Attributes,
    entities::{Entities, group_type, type_name, uid},
    place::short,
    policies::Policies,
    reads::Reads,
    scopes::{Scopes, Slice},
    size,
};

/// How much of a policy a denial quotes.
const QUOTE: usize = 80;

/// Parsed policies and entities.
pub(crate) struct Compiled {
    engine: cedar_policy::Authorizer,
    pub(crate) policies: Policies,
    pub(crate) scopes: Scopes,
    pub(crate) reads: Reads,
    /// The entities of the document.
    pub(crate) entities: Entities,
    /// Those that every decision needs: the actions, the server, and what conditions name.
    pub(crate) base: cedar_policy::Entities,
    /// The actions, which have more attributes than the document gives them.
    pub(crate) actions: Vec<EntityUid>,
    pub(crate) options: Cedar,
    pub(crate) types: Types,
    pub(crate) server: Option<EntityUid>,
}

pub(crate) struct Types {
    principals: [EntityTypeName; 2],
    pub(crate) group: EntityTypeName,
    action: EntityTypeName,
    pub(crate) features: [EntityTypeName; 3],
}

impl Types {
    fn new(group: EntityTypeName) -> Option<Self> {
        let [client, workflow] = PrincipalKind::ALL.map(|kind| type_name(kind.entity_type()));
        let [tool, prompt, resource] = Feature::ALL.map(|feature| type_name(feature.entity_type()));
        Some(Self {
            principals: [client?, workflow?],
            group,
            action: type_name("Action")?,
            features: [tool?, prompt?, resource?],
        })
    }

    pub(crate) fn principal(&self, principal: &Principal<'_>) -> EntityUid {
        let [client, workflow] = &self.principals;
        let type_ = match principal.kind {
            PrincipalKind::Client => client,
            PrincipalKind::Workflow => workflow,
        };
        uid(type_, principal.subject)
    }

    pub(crate) fn action(&self, action: Action) -> EntityUid {
        uid(&self.action, action.as_str())
    }

    pub(crate) fn resource(&self, action: Action, id: &str) -> EntityUid {
        let [tool, prompt, resource] = &self.features;
        let type_ = match action {
            Action::CallTool => tool,
            Action::GetPrompt => prompt,
            Action::ReadResource => resource,
        };
        uid(type_, id)
    }
}

impl Compiled {
    pub(crate) fn new(cedar: &Cedar, server: &str) -> Result<Self, Error> {
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
            let uid = types.action(action);
            let attributes = Attributes::from([("operation".to_owned(), name)]);
            base.extend(entities.beyond(&uid, []));
            actions.extend(entities.joined(uid, Attributes::new(), attributes, Vec::new()));
        }
        let uids = actions.iter().map(Entity::uid).collect();
        base.extend(actions);
        // The last of those with one uid counts.
        let base = cedar_policy::Entities::empty()
            .upsert_entities(base, None)
            .map_err(|error| Error::new("entities_json", error.to_string()))?;
        let options = Cedar { policies: Vec::new(), entities_json: String::new(), ..cedar.clone() };
        let engine = cedar_policy::Authorizer::new();
        let scopes = Scopes::of(&policies.set);
        Ok(Self { engine, scopes, reads, policies, entities, base, actions: uids, options, types, server })
    }

    /// Evaluates these policies.
    pub(crate) fn evaluate(
        &self,
        request: &Request,
        policies: &Slice,
        entities: &cedar_policy::Entities,
    ) -> Response {
        let set = self.scopes.set(policies);
        let policies = set.as_deref().unwrap_or(&self.policies.set);
        size::with_stack(self.policies.steps, || self.engine.is_authorized(request, policies, entities))
    }
}

/// A request passes if a policy permits it, none forbids it and none fails.
pub(crate) fn decision(response: &Response) -> Decision {
    let diagnostics = response.diagnostics();
    let allowed = response.decision() == cedar_policy::Decision::Allow;
    if !allowed {
        let mut forbidding: Vec<_> = diagnostics.reason().map(ToString::to_string).collect();
        if !forbidding.is_empty() {
            forbidding.sort_by_key(|id| order(id));
            return Decision::Deny(Denial::Forbidden(forbidding));
        }
    }
    let policy = |error: &&cedar_policy::AuthorizationError| {
        let cedar_policy::AuthorizationError::PolicyEvaluationError(error) = *error;
        order(error.policy_id().as_ref())
    };
    match diagnostics.errors().min_by_key(policy) {
        Some(error) => Decision::Deny(failure(error)),
        None if allowed => Decision::Allow,
        None => Decision::Deny(Denial::NotPermitted),
    }
}

/// The policy that failed, and the part of its text that did. The message of the error may quote a token.
pub(crate) fn failure(error: &cedar_policy::AuthorizationError) -> Denial {
    let cedar_policy::AuthorizationError::PolicyEvaluationError(error) = error;
    let policy = error.policy_id().to_string();
    let label = error.labels().and_then(|mut labels| labels.next());
    let at = label.zip(error.source_code()).and_then(|(label, source)| {
        let span = source.read_span(label.inner(), 0, 0).ok()?;
        let text = std::str::from_utf8(span.data()).ok()?;
        Some(short(&text.split_whitespace().collect::<Vec<_>>().join(" "), QUOTE))
    });
    let is_missing = matches!(
        error.inner(),
        EvaluationError::EntityAttrDoesNotExist(_) | EvaluationError::RecordAttrDoesNotExist(_)
    );
    Denial::Failed { policy, at, is_missing }
}

/// The position of a policy in the document: `policy2` before `policy10`.
pub(crate) fn order(policy: &str) -> Vec<usize> {
    policy.trim_start_matches("policy").split('.').filter_map(|number| number.parse().ok()).collect()
}
