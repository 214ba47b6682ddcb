//! The authorizers that a document can be for.

use serde::Deserialize;
use serde_json::Value;
use skep_authz::{Backend, Cedar, Pdp};

use crate::parts::checks;

/// The authorizer of that type.
pub(super) fn backend(type_: &str) -> Result<Backend, String> {
    Backend::of(type_).map_err(|error| error.to_string())
}

/// Checks that an authorizer's configuration has what it needs, each of the right type.
pub(super) fn check(backend: Backend, field: &str, config: &Value) -> Result<(), String> {
    match backend {
        Backend::Cedar => check_cedar(field, &read(field, config)?),
        Backend::Pdp => check_pdp(field, &read(field, config)?),
    }
}

fn read<'a, T: Deserialize<'a>>(field: &str, config: &'a Value) -> Result<T, String> {
    T::deserialize(config).map_err(|error| format!("{field}: {error}"))
}

/// Checks policies and the entities that they refer to. A policy that is wrong is quoted at the place.
pub(super) fn check_cedar(field: &str, cedar: &Cedar) -> Result<(), String> {
    skep_authz::check(cedar).map(drop).map_err(|error| format!("{field}.{error}"))
}

fn check_pdp(field: &str, pdp: &Pdp) -> Result<(), String> {
    checks::url(&format!("{field}.http.url"), &pdp.http.url)?;
    pdp.check().map_err(|error| format!("{field}.{error}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn cedar_needs_a_policy_and_entities_that_can_be_read() {
        let check = |config| check(Backend::Cedar, "config", &config);
        let policy = "permit(principal, action, resource);";
        let entity = r#"{"uid": {"type": "THVGroup", "id": "dev"}}"#;
        assert_eq!(check(json!({"policies": [policy]})), Ok(()));
        assert_eq!(check(json!({"policies": [policy], "entities_json": format!("[{entity}]")})), Ok(()));
        for (config, error) in [
            (json!({}), "config.policies: "),
            (json!({"policies": []}), "config.policies: "),
            (json!({"policies": "p"}), "config: "),
            (json!({"policies": [policy], "entities_json": "{}"}), "config.entities_json: "),
            (
                json!({"policies": [policy], "entities_json": format!("[{entity}, {{}}]")}),
                "config.entities_json[1]: missing field `uid`",
            ),
            (
                json!({"policies": [policy, "permit(principal, act, resource);"]}),
                "config.policies[1]: line 1, column 19, at `act, resource);`: ",
            ),
            (
                json!({"policies": [policy], "group_entity_type": "A::B"}),
                "config.group_entity_type: \"A::B\" ",
            ),
        ] {
            assert!(check(config.clone()).unwrap_err().starts_with(error), "{config}");
        }
    }

    #[test]
    fn a_policy_decision_point_needs_an_address_and_a_mapping() {
        let check = |config| check(Backend::Pdp, "config", &config);
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
