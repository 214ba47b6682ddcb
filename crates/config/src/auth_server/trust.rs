//! Delegation and trusted issuers: tokens without a user's login.

use serde::{Deserialize, Serialize};
use serde_with::apply;

use crate::{FieldError, FieldPath, duration, zero::zero};

/// A client that exchanges a user's token for one to act for that user (RFC 8693).
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct DelegateClient {
    /// The client.
    #[serde_with(skip_apply)]
    pub client_id: String,
    /// A file with its secret. It overrides the variable.
    pub client_secret_file: String,
    /// The variable with its secret.
    pub client_secret_env_var: String,
    /// The scopes that it may request.
    pub scopes: Vec<String>,
    /// The audiences that its tokens may have.
    pub audiences: Vec<String>,
}

/// An issuer whose tokens can be exchanged.
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct TrustedIssuer {
    /// The issuer.
    #[serde_with(skip_apply)]
    pub issuer_url: String,
    /// The audience that its tokens must have.
    pub expected_audience: String,
    /// The address of its keys. Without it, they are discovered.
    pub jwks_url: String,
    /// Whether it may be reached over plain HTTP.
    pub insecure_allow_http: bool,
    /// Whether it may have a private address.
    pub allow_private_ips: bool,
    /// The claim that names the actor. The default is `azp`.
    pub actor_claim: String,
    /// The actors that are allowed.
    pub allowed_actors: Vec<String>,
    /// A CEL expression that is true for allowed actors.
    pub actor_matcher: String,
    /// The clients that may exchange its tokens. `*` alone means all.
    pub allowed_delegate_clients: Vec<String>,
    /// Whether a token may itself name its actors (`may_act`).
    pub allow_may_act: bool,
    /// The grant that exchanges its tokens without a client (RFC 7523).
    pub jwt_bearer_grant: Option<JwtBearerGrant>,
}

/// The JWT bearer grant for an issuer's assertions (RFC 7523).
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct JwtBearerGrant {
    /// How old an assertion may be, as a Go duration.
    #[serde_with(skip_apply)]
    pub max_assertion_age: String,
    /// The subjects that may get tokens, and their resources.
    #[serde_with(skip_apply)]
    pub subject_bindings: Vec<SubjectBinding>,
    /// The audiences that an assertion may have, besides the token endpoint.
    pub accepted_audiences: Vec<String>,
}

/// The resources of one subject.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct SubjectBinding {
    /// The subject of the assertion.
    pub subject: String,
    /// The resources that it may get tokens for.
    pub allowed_resources: Vec<String>,
}

/// Stands for all clients.
const ALL: &str = "*";
/// Claims that are no name of an actor: others can set them, or every token has them.
const NO_ACTORS: [&str; 12] =
    ["sub", "iss", "aud", "exp", "iat", "nbf", "jti", "name", "email", "scope", "scp", "may_act"];

impl TrustedIssuer {
    /// Every mistake in how far the issuer is trusted. `audiences` are those of the server's tokens, where they are known.
    pub fn check(&self, audiences: Option<&[String]>) -> Vec<FieldError> {
        let mut errors = self.check_delegation();
        if let Some(grant) = &self.jwt_bearer_grant {
            let grant = grant.check(audiences).into_iter();
            errors.extend(grant.map(|error| error.within("jwt_bearer_grant")));
        }
        errors
    }

    fn check_delegation(&self) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let mut wrong = |field: &'static str, message: &str| errors.push(FieldError::new(field, message));
        let limits_actors = !self.actor_claim.is_empty()
            || !self.allowed_actors.is_empty()
            || !self.actor_matcher.is_empty()
            || self.allow_may_act;
        let (delegates, is_for_delegation) =
            (&self.allowed_delegate_clients, limits_actors || self.jwt_bearer_grant.is_none());
        if self.expected_audience.is_empty() && is_for_delegation {
            wrong("expected_audience", "is required: tokens of this issuer for others could be exchanged");
        }
        if NO_ACTORS.contains(&&*self.actor_claim) {
            wrong(
                "actor_claim",
                &format!(
                    "{:?} is no claim that names an actor: use azp, appid or client_id",
                    self.actor_claim
                ),
            );
        }
        let has_all = delegates.iter().any(|client| client == ALL);
        if delegates.is_empty() && (is_for_delegation || !self.expected_audience.is_empty()) {
            wrong(
                "allowed_delegate_clients",
                "is required: name the clients that may act for users of this issuer",
            );
        }
        if delegates.iter().any(String::is_empty) {
            wrong("allowed_delegate_clients", "has an empty item: remove it");
        }
        if has_all && delegates.len() > 1 {
            wrong("allowed_delegate_clients", "has * and others: * must be alone");
        }
        if has_all && self.allow_may_act {
            wrong(
                "allow_may_act",
                "must not be set where * in allowed_delegate_clients allows all clients: name them",
            );
        }
        if self.allow_private_ips && self.jwks_url.is_empty() {
            wrong(
                "allow_private_ips",
                "needs jwks_url: what the issuer serves would choose the address otherwise",
            );
        }
        errors
    }
}

impl JwtBearerGrant {
    fn check(&self, audiences: Option<&[String]>) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let mut wrong = |field: FieldPath, message: &str| errors.push(FieldError::new(field, message));
        match duration::parse(&self.max_assertion_age) {
            Ok(age) if age.is_zero() => wrong("max_assertion_age".into(), "must be more than zero"),
            Ok(_) => {}
            Err(error) => wrong("max_assertion_age".into(), &format!("is not a duration: {error}")),
        }
        if self.subject_bindings.is_empty() {
            wrong("subject_bindings".into(), "is required: name the subjects");
        }
        for (index, binding) in self.subject_bindings.iter().enumerate() {
            let at = FieldPath::from("subject_bindings").index(index);
            let subject = &binding.subject;
            if subject.is_empty() || subject == ALL {
                wrong(at.clone().join("subject"), "must be one subject, neither empty nor *");
            } else if self.subject_bindings.iter().take(index).any(|earlier| earlier.subject == *subject) {
                wrong(at.clone().join("subject"), &format!("duplicate of {subject:?}: remove one of them"));
            }
            let resources = at.join("allowed_resources");
            if binding.allowed_resources.is_empty() {
                wrong(resources.clone(), "is required: name the resources");
            }
            for (number, resource) in binding.allowed_resources.iter().enumerate() {
                let at = resources.clone().index(number);
                if resource.is_empty() || resource == ALL {
                    wrong(at, "must be one resource, neither empty nor *");
                } else if audiences.is_some_and(|audiences| !audiences.contains(resource)) {
                    wrong(at, &format!("{resource:?} must be one of allowed_audiences"));
                }
            }
        }
        for (index, audience) in self.accepted_audiences.iter().enumerate() {
            let at = FieldPath::from("accepted_audiences").index(index);
            if audience.is_empty() {
                wrong(at, "must not be empty");
            } else if audiences.is_some_and(|audiences| audiences.contains(audience)) {
                wrong(at, "is an audience of access tokens as well: these could be used as assertions");
            }
        }
        errors
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn errors(changes: Value) -> Vec<String> {
        let mut issuer = json!({
            "issuer_url": "https://o.example", "expected_audience": "https://mcp.example", "allowed_delegate_clients": ["agent"],
        });
        issuer.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        let issuer: TrustedIssuer = serde_json::from_value(issuer).unwrap();
        let errors = issuer.check(Some(&["https://mcp.example".into()]));
        errors.into_iter().map(|error| error.field.to_string()).collect()
    }

    fn assertions(changes: Value) -> Value {
        let mut grant = json!({
            "max_assertion_age": "5m",
            "subject_bindings": [{"subject": "ci", "allowed_resources": ["https://mcp.example"]}],
        });
        grant.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        json!({"jwt_bearer_grant": grant})
    }

    #[test]
    fn an_issuer_is_trusted_as_far_as_its_configuration_is_complete() {
        let bindings = |bindings: Value| assertions(json!({"subject_bindings": bindings}));
        let (grant, first) = ("jwt_bearer_grant", "jwt_bearer_grant.subject_bindings[0]");
        for (changes, field) in [
            (json!({"expected_audience": ""}), "expected_audience".to_owned()),
            (json!({"actor_claim": "sub"}), "actor_claim".into()),
            (json!({"actor_claim": "may_act"}), "actor_claim".into()),
            (json!({"allowed_delegate_clients": []}), "allowed_delegate_clients".into()),
            (json!({"allowed_delegate_clients": ["agent", ""]}), "allowed_delegate_clients".into()),
            (json!({"allowed_delegate_clients": ["*", "agent"]}), "allowed_delegate_clients".into()),
            (json!({"allowed_delegate_clients": ["*"], "allow_may_act": true}), "allow_may_act".into()),
            (json!({"allow_private_ips": true}), "allow_private_ips".into()),
            (assertions(json!({"max_assertion_age": "soon"})), format!("{grant}.max_assertion_age")),
            (assertions(json!({"max_assertion_age": "0s"})), format!("{grant}.max_assertion_age")),
            (bindings(json!([])), format!("{grant}.subject_bindings")),
            (
                bindings(json!([{"subject": "", "allowed_resources": ["https://mcp.example"]}])),
                format!("{first}.subject"),
            ),
            (
                bindings(json!([{"subject": "*", "allowed_resources": ["https://mcp.example"]}])),
                format!("{first}.subject"),
            ),
            (bindings(json!([{"subject": "ci"}])), format!("{first}.allowed_resources")),
            (
                bindings(json!([{"subject": "ci", "allowed_resources": ["*"]}])),
                format!("{first}.allowed_resources[0]"),
            ),
            (
                bindings(json!([{"subject": "ci", "allowed_resources": ["https://x.example"]}])),
                format!("{first}.allowed_resources[0]"),
            ),
            (
                bindings(json!([
                    {"subject": "ci", "allowed_resources": ["https://mcp.example"]},
                    {"subject": "ci", "allowed_resources": ["https://mcp.example"]},
                ])),
                format!("{grant}.subject_bindings[1].subject"),
            ),
            (assertions(json!({"accepted_audiences": [""]})), format!("{grant}.accepted_audiences[0]")),
            (
                assertions(json!({"accepted_audiences": ["https://mcp.example"]})),
                format!("{grant}.accepted_audiences[0]"),
            ),
        ] {
            assert_eq!(errors(changes.clone()), [field], "{changes}");
        }
        // Assertions need no delegates.
        let mut alone = assertions(json!({}));
        alone["expected_audience"] = "".into();
        alone["allowed_delegate_clients"] = json!([]);
        let all = json!({"allowed_delegate_clients": ["*"]});
        for fine in [json!({}), all, assertions(json!({"accepted_audiences": ["https://as.example"]})), alone]
        {
            assert_eq!(errors(fine.clone()), [""; 0], "{fine}");
        }
    }
}
