//! Authorization: an MCPAuthzConfig, or the policies in a workload itself.

mod backend;
mod policies;
mod warnings;
mod workload;

use serde_json::{Value, json};
use skep_api::{
    conditions::Valid,
    kinds::{MCPAuthzConfig, MCPAuthzConfigSpec},
};
use skep_config::{FieldError, Json, run_config::AuthzDocument};
use skep_converge::Finalizer;

use super::checks;
use crate::{config_controller::Config, reconcile::Condition};
pub(crate) use policies::{Policies, PoliciesCause, PoliciesError, inline_config_map};
use warnings::warning;
pub(super) use workload::{add_volumes, config_map_document, inline_document, inline_file};

impl Config for MCPAuthzConfig {
    const CONFIG_FINALIZER: Finalizer = Finalizer("mcpauthzconfig.toolhive.stacklok.dev/finalizer");
    const VALID: Valid = Valid::ConfigValid;

    fn check(spec: &MCPAuthzConfigSpec) -> Vec<FieldError> {
        let backend = match backend::backend(&spec.type_) {
            Ok(backend) => backend,
            Err(error) => return vec![error],
        };
        if spec.config.0.is_empty() {
            return vec![FieldError::new(
                "config",
                format!("is empty: set what type {:?} needs", spec.type_),
            )];
        }
        checks::within("config", backend::check(backend, &Value::Object(spec.config.0.clone()))).collect()
    }

    fn invalid() -> Valid {
        Valid::ConfigInvalid
    }

    fn further_conditions(spec: &MCPAuthzConfigSpec) -> Vec<Condition> {
        // The document has the settings of the type under a key for that type; the object has them in `config`.
        let document = document(spec).ok();
        document.and_then(|document| warning("config.", &document)).into_iter().collect()
    }
}

/// The document for the proxy of a workload that refers to the object.
pub(super) fn document(spec: &MCPAuthzConfigSpec) -> Result<Json, FieldError> {
    let backend = backend::backend(&spec.type_)?;
    let document =
        json!({backend.key(): spec.config.0, "type": spec.type_, "version": AuthzDocument::VERSION});
    serialize_sorted(document).map_err(|error| error.within("config"))
}

/// A document with sorted keys, as Go writes a map.
fn serialize_sorted(mut document: Value) -> Result<Json, FieldError> {
    document.sort_all_objects();
    serialize(&document)
}

fn serialize(document: &impl serde::Serialize) -> Result<Json, FieldError> {
    let message = |error| format!("the authorization document cannot be serialized: {error}");
    Json::new(document).map_err(|error| FieldError::new("", message(error)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config_refs::samples::{fields, sample};

    fn spec(type_: &str, config: Value) -> MCPAuthzConfigSpec {
        sample(json!({"type": type_, "config": config}))
    }

    #[test]
    fn the_configuration_is_under_the_key_of_its_authorizer() {
        let cedar = document(&spec("cedarv1", json!({"policies": ["permit(a < b);"]}))).unwrap();
        let expected = r#"{"cedar":{"policies":["permit(a \u003c b);"]},"type":"cedarv1","version":"1.0"}"#;
        assert_eq!(cedar.as_str(), expected);
        let pdp = document(&spec("httpv1", json!({"claim_mapping": "mpe"}))).unwrap();
        assert_eq!(pdp.as_str(), r#"{"pdp":{"claim_mapping":"mpe"},"type":"httpv1","version":"1.0"}"#);
    }

    #[test]
    fn an_authorizer_is_cedar_or_a_decision_point_and_needs_a_configuration() {
        for (type_, field) in [("opa", "type"), ("cedarv1", "config"), ("httpv1", "config")] {
            assert_eq!(fields(&MCPAuthzConfig::check(&spec(type_, json!({})))), [field], "{type_}");
            assert_eq!(document(&spec(type_, json!({}))).is_err(), type_ == "opa");
        }
        assert!(MCPAuthzConfig::check(&spec("opa", json!({})))[0].message.starts_with("\"opa\" "));
    }

    #[test]
    fn every_mistake_is_reported() {
        let config = json!({"policies": ["permit", "permit(principal, action, resource);", "forbid"]});
        assert_eq!(
            fields(&MCPAuthzConfig::check(&spec("cedarv1", config))),
            ["config.policies[0]", "config.policies[2]"]
        );
    }
}
