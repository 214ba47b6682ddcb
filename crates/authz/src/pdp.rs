//! A service that decides, asked over HTTP. Here is what it is asked, and what its answer means; asking it is for others.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::{Action, Error, Principal, Resource};

/// The claims that a service is told, and which claims of a token they come from: the first that is there.
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
    /// Where it is.
    pub http: PdpHttp,
    /// What it is told of a request besides who, what and on which.
    pub context: PdpContext,
    /// How claims are written for it: `mpe` or `standard`.
    pub claim_mapping: String,
}

/// Where a policy decision point is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct PdpHttp {
    /// Its URL, to which `/decision` is added.
    pub url: String,
    /// How many seconds it may take. Zero stands for the default, 30.
    pub timeout: u32,
    /// Whether its certificate is taken as it is.
    pub insecure_skip_verify: bool,
}

/// What a policy decision point is told of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct PdpContext {
    /// The arguments.
    pub include_args: bool,
    /// The feature and the operation.
    pub include_operation: bool,
}

impl Pdp {
    /// Whether it has what it cannot do without. That the URL is one is for the client to find out.
    pub fn check(&self) -> Result<(), Error> {
        if self.http.url.is_empty() {
            return Err(Error::new("http.url", "say where the policy decision point is"));
        }
        match self.claim_mapping.as_str() {
            "mpe" | "standard" => Ok(()),
            other => Err(Error::new("claim_mapping", format!("{other:?} is neither mpe nor standard"))),
        }
    }

    /// The question, as the body of a request: may they do this, on the server of that name?
    pub fn question(
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

    /// Whether an answer says yes. What does not say so says no.
    pub fn allows(answer: &[u8]) -> bool {
        #[derive(Deserialize)]
        struct Answer {
            #[serde(default)]
            allow: bool,
        }
        // A list of values would do for serde.
        let object = answer.trim_ascii_start().starts_with(b"{");
        object && serde_json::from_slice::<Answer>(answer).is_ok_and(|answer| answer.allow)
    }

    fn principal(&self, principal: &Principal<'_>) -> Value {
        let mpe = self.claim_mapping == "mpe";
        let mut told = Map::new();
        for (name, sources) in if mpe { MPE } else { STANDARD } {
            let claim = sources.iter().find_map(|source| principal.claims.get(*source));
            told.extend(claim.map(|claim| ((*name).to_owned(), claim.clone())));
        }
        if mpe {
            // Such a service takes it to be there.
            told.entry("mannotations").or_insert_with(|| json!({}));
        }
        told.into()
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

    fn question(settings: Value, claims: Value, action: Action, hints: Hints, arguments: Value) -> Value {
        let pdp: Pdp = serde_json::from_value(settings).unwrap();
        let principal = Principal { subject: "alice", claims: claims.as_object().unwrap() };
        let resource = Resource { hints, ..Resource::new("file:///a:b") };
        pdp.question("files", &principal, action, &resource, arguments.as_object())
    }

    #[test]
    fn the_least_is_who_what_and_on_which() {
        let claims = json!({"sub": "alice", "roles": ["r"], "scope": "a b", "email": "a@b", "mroles": ["m"]});
        let hints = Hints { read_only: Some(true), ..Hints::default() };
        let asked = question(
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
        assert_eq!(asked, expected);
    }

    #[test]
    fn more_is_told_where_the_document_asks_for_it() {
        let claims = json!({
            "sub": "alice", "mroles": ["m"], "roles": ["r"], "groups": ["g"], "scopes": ["s"], "clearance": "c",
        });
        let settings = json!({
            "claim_mapping": "mpe", "context": {"include_args": true, "include_operation": true},
        });
        let hints = Hints { read_only: Some(false), open_world: Some(true), ..Hints::default() };
        let asked = question(settings, claims, Action::CallTool, hints, json!({"path": ["/"]}));
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
        assert_eq!(asked, expected);
    }

    #[test]
    fn what_does_not_say_yes_says_no() {
        assert!(Pdp::allows(br#"{"allow": true, "reason": "x"}"#));
        for no in
            [r#"{"allow": false}"#, "{}", r#"{"allow": "true"}"#, r#"{"allow": 1}"#, "true", "", "[true]"]
        {
            assert!(!Pdp::allows(no.as_bytes()), "{no}");
        }
        assert!(!Pdp::allows(br#"{"allow": false, "allow": true}"#));
    }
}
