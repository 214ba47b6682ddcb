//! The authorizers that a document can be for.

use serde::Deserialize;
use serde_json::Value;
use skep_config::run_config::{AuthzDocument, Cedar};

use crate::parts::checks;

/// An authorizer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Backend {
    /// Policies in Cedar, which the proxy evaluates itself.
    Cedar,
    /// A policy decision point, which it asks over HTTP.
    Pdp,
}

impl Backend {
    /// The authorizer of that type.
    pub(super) fn of(field: &str, type_: &str) -> Result<Self, String> {
        match type_ {
            AuthzDocument::CEDAR => Ok(Self::Cedar),
            AuthzDocument::PDP => Ok(Self::Pdp),
            _ => Err(format!(
                "{field}: {type_:?} is not known: use {} for Cedar policies, or {} for a policy decision point",
                AuthzDocument::CEDAR,
                AuthzDocument::PDP
            )),
        }
    }

    /// The key of its configuration in a document.
    pub(super) const fn key(self) -> &'static str {
        match self {
            Self::Cedar => "cedar",
            Self::Pdp => "pdp",
        }
    }

    /// Checks that its configuration has what it needs, each of the right type.
    pub(super) fn check(self, field: &str, config: &Value) -> Result<(), String> {
        match self {
            Self::Cedar => check_cedar(field, &read(field, config)?),
            Self::Pdp => check_pdp(field, &read(field, config)?),
        }
    }
}

fn read<'a, T: Deserialize<'a>>(field: &str, config: &'a Value) -> Result<T, String> {
    T::deserialize(config).map_err(|error| format!("{field}: {error}"))
}

/// Checks policies and the entities that they refer to.
pub(super) fn check_cedar(field: &str, cedar: &Cedar) -> Result<(), String> {
    if cedar.policies.is_empty() {
        return Err(format!("{field}.policies: write at least one policy: what none permits is denied"));
    }
    let entities = &cedar.entities_json;
    if !entities.is_empty()
        && let Err(error) = serde_json::from_str::<Vec<Value>>(entities)
    {
        return Err(format!("{field}.entities_json: it is not a list in JSON: {error}"));
    }
    Ok(())
}

/// What a policy decision point cannot do without. The rest is for the proxy to read.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Pdp {
    http: Endpoint,
    claim_mapping: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Endpoint {
    url: String,
}

fn check_pdp(field: &str, pdp: &Pdp) -> Result<(), String> {
    checks::url(&format!("{field}.http.url"), &pdp.http.url)?;
    match pdp.claim_mapping.as_str() {
        "mpe" | "standard" => Ok(()),
        other => Err(format!("{field}.claim_mapping: {other:?} is neither mpe nor standard")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn cedar_needs_a_policy_and_entities_that_can_be_read() {
        let check = |config| Backend::Cedar.check("config", &config);
        assert_eq!(check(json!({"policies": ["permit(principal, action, resource);"]})), Ok(()));
        assert_eq!(check(json!({"policies": ["p"], "entities_json": "[{\"uid\": 1}]"})), Ok(()));
        for (config, error) in [
            (json!({}), "config.policies: "),
            (json!({"policies": []}), "config.policies: "),
            (json!({"policies": "p"}), "config: "),
            (json!({"policies": ["p"], "entities_json": "{}"}), "config.entities_json: "),
        ] {
            assert!(check(config.clone()).unwrap_err().starts_with(error), "{config}");
        }
    }

    #[test]
    fn a_policy_decision_point_needs_an_address_and_a_mapping() {
        let check = |config| Backend::Pdp.check("config", &config);
        let http = json!({"url": "http://pdp.team:8080/decide", "timeout": 5});
        assert_eq!(check(json!({"http": http, "claim_mapping": "mpe"})), Ok(()));
        for (config, error) in [
            (json!({"claim_mapping": "mpe"}), "config.http.url: \"\" "),
            (json!({"http": http}), "config.claim_mapping: \"\" "),
            (json!({"http": http, "claim_mapping": "own"}), "config.claim_mapping: \"own\" "),
        ] {
            assert!(check(config.clone()).unwrap_err().starts_with(error), "{config}");
        }
    }
}
