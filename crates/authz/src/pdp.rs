//! Requests to a policy decision point, and its responses. The proxy sends them over HTTP.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::{Action, Error, Principal, PrincipalKind, Resource};

/// The claims in a request, and the claims of a token that they come from: the first that exists.
type Mapping = &'static [(&'static str, &'static [&'static str])];

const STANDARD: Mapping =
    &[("sub", &["sub"]), ("roles", &["roles"]), ("groups", &["groups"]), ("scopes", &["scopes", "scope"])];
const MPE: Mapping = &[
    ("sub", &["sub"]),
    ("mroles", &["mroles", "roles"]),
    ("mgroups", &["mgroups", "groups"]),
    ("scopes", &["scopes", "scope"]),
    ("mclearance", &["mclearance", "clearance"]),
    ("mannotations", &["mannotations", "annotations"]),
];

/// A policy decision point.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Pdp {
    /// Its address.
    pub http: PdpHttp,
    /// What a request contains besides principal, operation and resource.
    pub context: PdpContext,
    /// The format of claims: `mpe` or `standard`.
    pub claim_mapping: String,
}

/// The address of a policy decision point.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct PdpHttp {
    /// Its URL, to which `/decision` is added.
    pub url: String,
    /// The timeout in seconds. Zero means the default, 30.
    pub timeout: u32,
    /// Whether its certificate is not verified.
    pub insecure_skip_verify: bool,
}

/// What a request to a policy decision point contains of the MCP request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct PdpContext {
    /// The arguments.
    pub include_args: bool,
    /// The feature and the operation.
    pub include_operation: bool,
}

impl Pdp {
    /// Validates that required settings exist. The client validates the URL.
    pub fn check(&self) -> Result<(), Error> {
        if self.http.url.is_empty() {
            return Err(Error::new("http.url", "set the URL of the policy decision point"));
        }
        match self.claim_mapping.as_str() {
            "mpe" | "standard" => Ok(()),
            other => Err(Error::new("claim_mapping", format!("{other:?} is neither mpe nor standard"))),
        }
    }

    /// The body of a request for the decision about an action on the server of that name.
    pub fn request(
        &self,
        server: &str,
        principal: &Principal<'_>,
        action: Action,
        resource: &Resource<'_>,
        arguments: Option<&Map<String, Value>>,
    ) -> Value {
        let (feature, operation) = (action.feature().as_str(), action.operation());
        json!({
            "principal": self.principal(principal),
            "operation": format!("mcp:{feature}:{operation}"),
            "resource": format!("mrn:mcp:{server}:{feature}:{}", resource.id),
            "context": self.context(action, resource, arguments),
        })
    }

    /// Whether a response permits the request. A malformed response denies it.
    pub fn allows(answer: &[u8]) -> bool {
        #[derive(Deserialize)]
        struct Answer {
            #[serde(default)]
            allow: bool,
        }
        // serde would accept a list of values, too.
        let object = answer.trim_ascii_start().starts_with(b"{");
        object && serde_json::from_slice::<Answer>(answer).is_ok_and(|answer| answer.allow)
    }

    fn principal(&self, principal: &Principal<'_>) -> Value {
        let mpe = self.claim_mapping == "mpe";
        let mut claims = Map::new();
        if principal.kind == PrincipalKind::Workflow {
            // No token can have the second claim here: a caller is never taken for a workflow.
            claims.insert("sub".into(), format!("workflow:{}", principal.subject).into());
            claims.insert("workflow".into(), principal.subject.into());
        }
        for (name, sources) in if mpe { MPE } else { STANDARD } {
            let claim = sources.iter().find_map(|source| principal.claims.get(*source));
            claims.extend(claim.map(|claim| ((*name).to_owned(), claim.clone())));
        }
        if mpe {
            // Such a service requires the field.
            claims.entry("mannotations").or_insert_with(|| json!({}));
        }
        claims.into()
    }

    fn context(
        &self,
        action: Action,
        resource: &Resource<'_>,
        arguments: Option<&Map<String, Value>>,
    ) -> Value {
        let mut mcp = Map::new();
        if self.context.include_operation {
            mcp.insert("feature".into(), action.feature().as_str().into());
            mcp.insert("operation".into(), action.operation().into());
            mcp.insert("resource_id".into(), resource.id.into());
        }
        if let Some(arguments) = arguments.filter(|given| self.context.include_args && !given.is_empty()) {
            mcp.insert("args".into(), Value::Object(arguments.clone()));
        }
        let hints = resource.hints.given().map(|(name, hint)| (name.to_owned(), Value::from(hint)));
        let hints: Map<_, _> = hints.filter(|_| action == Action::CallTool).collect();
        if !hints.is_empty() {
            mcp.insert("annotations".into(), hints.into());
        }
        if mcp.is_empty() { json!({}) } else { json!({"mcp": mcp}) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Hints;

    fn request(settings: Value, claims: Value, action: Action, hints: Hints, arguments: Value) -> Value {
        let pdp: Pdp = serde_json::from_value(settings).unwrap();
        let principal =
            Principal { kind: PrincipalKind::Client, subject: "alice", claims: claims.as_object().unwrap() };
        let resource = Resource { hints, ..Resource::new("file:///a:b") };
        pdp.request("files", &principal, action, &resource, arguments.as_object())
    }

    #[test]
    fn a_request_contains_principal_operation_and_resource() {
        let claims = json!({"sub": "alice", "roles": ["r"], "scope": "a b", "email": "a@b", "mroles": ["m"]});
        let hints = Hints { read_only: Some(true), ..Hints::default() };
        let request = request(
            json!({"claim_mapping": "standard"}),
            claims,
            Action::ReadResource,
            hints,
            json!({"path": "/"}),
        );
        let expected = json!({
            "principal": {"sub": "alice", "roles": ["r"], "scopes": "a b"},
            "operation": "mcp:resource:read", "resource": "mrn:mcp:files:resource:file:///a:b", "context": {},
        });
        assert_eq!(request, expected);
    }

    #[test]
    fn optional_parts_are_sent_if_the_document_requires_them() {
        let claims = json!({
            "sub": "alice", "mroles": ["m"], "roles": ["r"], "groups": ["g"], "scopes": ["s"], "clearance": "c",
        });
        let settings = json!({
            "claim_mapping": "mpe", "context": {"include_args": true, "include_operation": true},
        });
        let hints = Hints { read_only: Some(false), open_world: Some(true), ..Hints::default() };
        let request = request(settings, claims, Action::CallTool, hints, json!({"path": ["/"]}));
        let expected = json!({
            "principal": {
                "sub": "alice", "mroles": ["m"], "mgroups": ["g"], "scopes": ["s"], "mclearance": "c",
                "mannotations": {},
            },
            "operation": "mcp:tool:call", "resource": "mrn:mcp:files:tool:file:///a:b",
            "context": {"mcp": {
                "feature": "tool", "operation": "call", "resource_id": "file:///a:b", "args": {"path": ["/"]},
                "annotations": {"readOnlyHint": false, "openWorldHint": true},
            }},
        });
        assert_eq!(request, expected);
    }

    #[test]
    fn a_workflow_has_a_claim_that_no_caller_can_have() {
        let pdp: Pdp = serde_json::from_value(json!({"claim_mapping": "standard"})).unwrap();
        let claims = json!({"sub": "workflow:combo", "workflow": "combo"});
        let claims = claims.as_object().unwrap();
        let sent = |kind, subject| pdp.principal(&Principal { kind, subject, claims });
        assert_eq!(sent(PrincipalKind::Client, "workflow:combo"), json!({"sub": "workflow:combo"}));
        let none = Map::new();
        let workflow = Principal { kind: PrincipalKind::Workflow, subject: "combo", claims: &none };
        assert_eq!(pdp.principal(&workflow), json!({"sub": "workflow:combo", "workflow": "combo"}));
    }

    #[test]
    fn only_an_explicit_allow_permits() {
        assert!(Pdp::allows(br#"{"allow": true, "reason": "x"}"#));
        for no in
            [r#"{"allow": false}"#, "{}", r#"{"allow": "true"}"#, r#"{"allow": 1}"#, "true", "", "[true]"]
        {
            assert!(!Pdp::allows(no.as_bytes()), "{no}");
        }
        assert!(!Pdp::allows(br#"{"allow": false, "allow": true}"#));
    }
}
