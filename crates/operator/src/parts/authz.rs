//! Who may do what: an MCPAuthzConfig, or policies that a workload brings itself.

mod backend;
mod warnings;
mod workload;

use serde_json::{Value, json};
use skep_api::kinds::MCPAuthzConfigSpec;
use skep_config::{Json, run_config::AuthzDocument};

pub(crate) use warnings::warning;
pub(crate) use workload::{add_volumes, config_map_document, inline_document, inline_file};

/// What is wrong with the object by itself.
pub(crate) fn check(spec: &MCPAuthzConfigSpec) -> Result<(), String> {
    let backend = backend::backend(&spec.type_)?;
    if spec.config.0.is_empty() {
        return Err(format!("config: set what {:?} needs", spec.type_));
    }
    backend::check(backend, "config", &Value::Object(spec.config.0.clone()))
}

/// The document for the proxy of a workload that refers to the object.
pub(crate) fn document(spec: &MCPAuthzConfigSpec) -> Result<Json, String> {
    let backend = backend::backend(&spec.type_)?;
    let document =
        json!({backend.key(): spec.config.0, "type": spec.type_, "version": AuthzDocument::VERSION});
    written_sorted(document)
}

/// A document with sorted keys, as Go writes one that it knows nothing of.
fn written_sorted(mut document: Value) -> Result<Json, String> {
    document.sort_all_objects();
    written(&document)
}

fn written(document: &impl serde::Serialize) -> Result<Json, String> {
    Json::new(document).map_err(|error| format!("the authorization document cannot be written: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parts::samples::sample;

    fn spec(type_: &str, config: Value) -> MCPAuthzConfigSpec {
        sample(json!({"type": type_, "config": config}))
    }

    #[test]
    fn the_configuration_stands_under_the_key_of_its_authorizer() {
        let cedar = document(&spec("cedarv1", json!({"policies": ["permit(a < b);"]}))).unwrap();
        let expected = r#"{"cedar":{"policies":["permit(a \u003c b);"]},"type":"cedarv1","version":"1.0"}"#;
        assert_eq!(cedar.as_str(), expected);
        let pdp = document(&spec("httpv1", json!({"claim_mapping": "mpe"}))).unwrap();
        assert_eq!(pdp.as_str(), r#"{"pdp":{"claim_mapping":"mpe"},"type":"httpv1","version":"1.0"}"#);
    }

    #[test]
    fn there_are_two_authorizers_and_each_needs_a_configuration() {
        for (type_, error) in [("opa", "type: \"opa\" "), ("cedarv1", "config: "), ("httpv1", "config: ")] {
            assert!(check(&spec(type_, json!({}))).unwrap_err().starts_with(error), "{type_}");
            assert_eq!(document(&spec(type_, json!({}))).is_err(), type_ == "opa");
        }
    }
}
