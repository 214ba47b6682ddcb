//! The authorizers of a document.

use serde::de::DeserializeOwned;
use serde_json::Value;
use skep_authz::{Backend, Cedar, Pdp};
use skep_config::FieldError;
use skep_gocompat::fold;

use crate::config_refs::checks;

/// The authorizer of a type.
pub(super) fn backend(type_: &str) -> Result<Backend, FieldError> {
    Backend::of(type_).map_err(|error| field_error(&error))
}

/// Every mistake in an authorizer's configuration, with fields below it.
pub(super) fn check(backend: Backend, config: &Value) -> Vec<FieldError> {
    let checked = match backend {
        Backend::Cedar => parse(config).map(|cedar| check_cedar(&cedar)),
        Backend::Pdp => parse(config).map(|pdp| check_pdp(&pdp)),
    };
    checked.unwrap_or_else(|error| vec![error])
}

/// The configuration as proxies read it: keys in any case, and none twice.
fn parse<T: DeserializeOwned>(config: &Value) -> Result<T, FieldError> {
    fold::from_value(config).map_err(|error| FieldError::new("", error.to_string()))
}

/// Every mistake in policies, their entities and the type of groups. An invalid policy is quoted at the place.
pub(super) fn check_cedar(cedar: &Cedar) -> Vec<FieldError> {
    skep_authz::mistakes(cedar).iter().map(field_error).collect()
}

fn check_pdp(pdp: &Pdp) -> Vec<FieldError> {
    let url = checks::url("http.url", &pdp.http.url).err();
    // Its own check stops at a missing URL.
    let rest =
        Pdp { http: skep_authz::PdpHttp { url: "http://valid".into(), ..pdp.http.clone() }, ..pdp.clone() };
    let rest = rest.check().err().as_ref().map(field_error);
    url.into_iter().chain(rest).collect()
}

pub(super) fn field_error(error: &skep_authz::Error) -> FieldError {
    FieldError::new(error.path().to_owned(), error.message())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::config_refs::samples::fields;

    const VALID_POLICY: &str = "permit(principal, action, resource);";

    fn first(errors: &[FieldError]) -> String {
        errors.first().map(ToString::to_string).unwrap_or_default()
    }

    #[test]
    fn cedar_needs_a_policy_and_entities_that_can_be_parsed() {
        let check = |config| check(Backend::Cedar, &config);
        let policy = VALID_POLICY;
        let entity = r#"{"uid": {"type": "THVGroup", "id": "dev"}}"#;
        assert_eq!(check(json!({"policies": [policy]})), []);
        assert_eq!(check(json!({"Policies": [policy]})), [], "as proxies read it");
        assert_eq!(check(json!({"policies": [policy], "entities_json": format!("[{entity}]")})), []);
        for (config, field, message) in [
            (json!({}), "policies", ""),
            (json!({"policies": []}), "policies", ""),
            (json!({"policies": "p"}), "", ""),
            (json!({"policies": [policy], "Policies": []}), "", "duplicate field `policies`"),
            (json!({"policies": [policy], "entities_json": "{}"}), "entities_json", ""),
            (
                json!({"policies": [policy], "entities_json": format!("[{entity}, {{}}]")}),
                "entities_json[1]",
                "missing field `uid`",
            ),
            (
                json!({"policies": [policy, "permit(principal, act, resource);"]}),
                "policies[1]",
                "line 1, column 19, at `act, resource);`: ",
            ),
            (json!({"policies": [policy], "group_entity_type": "A::B"}), "group_entity_type", "\"A::B\" "),
        ] {
            let errors = check(config.clone());
            assert_eq!(fields(&errors), [field], "{config}");
            assert!(errors[0].message.starts_with(message), "{errors:?}");
        }
    }

    #[test]
    fn every_part_of_a_cedar_configuration_is_checked() {
        let config =
            json!({"policies": ["permit", "forbid"], "entities_json": "{}", "group_entity_type": "A::B"});
        let expected = ["policies[0]", "policies[1]", "entities_json", "group_entity_type"];
        assert_eq!(fields(&check(Backend::Cedar, &config)), expected);
        let config = json!({"policies": [], "entities_json": "{}"});
        assert_eq!(fields(&check(Backend::Cedar, &config)), ["policies", "entities_json"]);
    }

    #[test]
    fn a_policy_decision_point_needs_an_address_and_a_mapping() {
        let check = |config| check(Backend::Pdp, &config);
        let http = json!({"url": "http://pdp.team:8080/decide", "timeout": 5});
        assert_eq!(check(json!({"http": http, "claim_mapping": "mpe"})), []);
        for (config, error) in [
            (json!({"claim_mapping": "mpe"}), "http.url: \"\" "),
            (json!({"http": http}), "claim_mapping: \"\" "),
            (json!({"http": http, "claim_mapping": "own"}), "claim_mapping: \"own\" "),
        ] {
            assert!(first(&check(config.clone())).starts_with(error), "{config}");
        }
        assert_eq!(fields(&check(json!({}))), ["http.url", "claim_mapping"]);
    }
}
