//! Policies, and requests for them to decide.

use serde_json::{Map, Value, json};
use skep_authz::{Action, Authorizer, Cedar, Decision, Denial, Hints, Principal, PrincipalKind, Resource};

pub(crate) const EVERYTHING: &str = "permit(principal, action, resource);";

pub(crate) fn cedar<const N: usize>(policies: [&str; N]) -> Cedar {
    Cedar { policies: policies.map(Into::into).into(), ..Cedar::default() }
}

/// A request. By default: alice calls the tool `search` of the server `web`.
pub(crate) struct Request {
    pub(crate) cedar: Cedar,
    pub(crate) subject: &'static str,
    pub(crate) claims: Value,
    pub(crate) action: Action,
    pub(crate) id: String,
    pub(crate) hints: Hints,
    pub(crate) arguments: Option<Value>,
}

impl Request {
    pub(crate) fn of<const N: usize>(policies: [&str; N]) -> Self {
        Self {
            cedar: cedar(policies),
            subject: "alice",
            claims: json!({}),
            action: Action::CallTool,
            id: "search".into(),
            hints: Hints::default(),
            arguments: None,
        }
    }

    /// One policy that permits everything if a condition is true.
    pub(crate) fn when(condition: &str) -> Self {
        Self::of([&format!("permit(principal, action, resource) when {{ {condition} }};")])
    }

    pub(crate) fn claims(self, claims: Value) -> Self {
        Self { claims, ..self }
    }

    pub(crate) fn arguments(self, arguments: Value) -> Self {
        Self { arguments: Some(arguments), ..self }
    }

    pub(crate) fn on(self, action: Action, id: &str) -> Self {
        Self { action, id: id.into(), ..self }
    }

    pub(crate) fn entities(mut self, entities: Value) -> Self {
        self.cedar.entities_json = entities.to_string();
        self
    }

    pub(crate) fn decision(&self) -> Decision {
        let authorizer = Authorizer::new(&self.cedar, "web").unwrap();
        let principal =
            Principal { kind: PrincipalKind::Client, subject: self.subject, claims: object(&self.claims) };
        let resource = Resource { hints: self.hints, ..Resource::new(&self.id) };
        authorizer.decide(&principal, self.action, &resource, self.arguments.as_ref().map(object))
    }

    pub(crate) fn is_allowed(&self) -> bool {
        self.decision().is_allowed()
    }

    pub(crate) fn denial(&self) -> String {
        match self.decision() {
            Decision::Allow => panic!("it passes"),
            Decision::Deny(denial) => denial.to_string(),
        }
    }

    pub(crate) fn fails(&self) -> bool {
        matches!(self.decision(), Decision::Deny(Denial::Failed { .. }))
    }
}

pub(crate) fn object(value: &Value) -> &Map<String, Value> {
    value.as_object().unwrap()
}
