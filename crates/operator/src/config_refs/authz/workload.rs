//! The policies in a workload itself, inline or in a ConfigMap.

use serde_json::{Map, Value, json};
use skep_api::authz::{AuthzConfig, AuthzConfigType, InlineAuthz};
use skep_authz::{Backend, Document};
use skep_config::{
    FieldError, FieldPath, Json, field, paths,
    run_config::{AuthzDocument, Cedar},
};

use super::{
    backend::{backend, check, check_cedar, field_error},
    serialize, serialize_sorted,
};
use crate::{
    build::Volumes,
    config_refs::{checks::within, non_empty, or_empty},
};

const VOLUME: &str = "authz-config";

/// The document of inline policies, or every mistake in them.
pub(crate) fn inline_document(config: &AuthzConfig) -> Result<Json, Vec<FieldError>> {
    let inline = inline(config).map_err(|error| vec![error])?;
    let cedar = Cedar {
        policies: inline.policies.clone(),
        entities_json: inline.entities_json().into(),
        group_claim_name: or_empty(&config.group_claim_name),
        role_claim_name: or_empty(&config.role_claim_name),
        group_entity_type: or_empty(&config.group_entity_type),
        ..Cedar::default()
    };
    let errors: Vec<FieldError> = check_cedar(&cedar)
        .into_iter()
        .map(|error| FieldError { field: field_of_workload(error.field), ..error })
        .collect();
    if !errors.is_empty() {
        return Err(errors);
    }
    serialize(&AuthzDocument::with_cedar(cedar)).map_err(|error| vec![error.within("authzConfig.inline")])
}

/// The field of the workload that a field of the document is from.
fn field_of_workload(field: FieldPath) -> FieldPath {
    let text = field.to_string();
    if text == "group_entity_type" {
        return FieldPath::from("authzConfig.groupEntityType");
    }
    let inline = FieldPath::from("authzConfig.inline");
    match text.strip_prefix("entities_json") {
        Some(rest) => inline.join("entitiesJson").join(rest.to_owned()),
        None => inline.join(field),
    }
}

/// The file beside the document, for administrators: the proxy takes the document from its RunConfig.
pub(crate) fn inline_file(config: &AuthzConfig) -> Result<String, FieldError> {
    let inline = inline(config)?;
    let file = json!({
        "cedar": {"entities_json": inline.entities_json(), "policies": inline.policies},
        "type": AuthzDocument::CEDAR,
        "version": AuthzDocument::VERSION,
    });
    let file = serialize_sorted(file).map_err(|error| error.within("authzConfig.inline"))?;
    Ok(file.as_str().into())
}

fn inline(config: &AuthzConfig) -> Result<&InlineAuthz, FieldError> {
    let missing = || FieldError::new("authzConfig.inline", "is required with type inline");
    config.inline.as_ref().ok_or_else(missing)
}

/// The document in a ConfigMap's key, YAML or JSON, with the claims that the workload sets instead.
pub(crate) fn config_map_document(config: &AuthzConfig, text: &str) -> Result<Json, FieldError> {
    let place =
        config.config_map.as_ref().map(|map| format!("ConfigMap {:?}, key {:?}", map.name, map.key()));
    let place = place.unwrap_or_default();
    let invalid = |errors: &[FieldError]| {
        FieldError::new("authzConfig.configMap", format!("{place}: {}", field::joined(errors)))
    };
    let mut document = parse(text).map_err(|error| invalid(&[error]))?;
    let type_ = document.get("type").and_then(Value::as_str).unwrap_or_default();
    let backend = backend(type_).map_err(|error| invalid(&[error]))?;
    let key = backend.key();
    let missing = || invalid(&[FieldError::new(key, "is missing: set what the type needs")]);
    let settings = document.get_mut(key).ok_or_else(missing)?;
    let errors: Vec<_> = within(key, check(backend, settings)).collect();
    if !errors.is_empty() {
        return Err(invalid(&errors));
    }
    if let (Backend::Cedar, Some(cedar)) = (backend, settings.as_object_mut()) {
        let claims = [
            ("group_claim_name", &config.group_claim_name),
            ("role_claim_name", &config.role_claim_name),
            ("group_entity_type", &config.group_entity_type),
        ];
        let set = claims.iter().filter_map(|(key, value)| Some((*key, non_empty(value)?)));
        cedar.extend(set.map(|(key, value)| (key.into(), value.into())));
    }
    if !document.keys().any(|key| key.eq_ignore_ascii_case("version")) {
        document.insert("version".into(), AuthzDocument::VERSION.into());
    }
    let document = Value::Object(document);
    // As a whole: proxies read keys in any case, and accept none twice.
    Document::read(&document).map_err(|error| invalid(&[field_error(&error)]))?;
    serialize_sorted(document).map_err(|error| invalid(&[error]))
}

fn parse(text: &str) -> Result<Map<String, Value>, FieldError> {
    // JSON may be indented by tabs, which YAML forbids.
    serde_json::from_str(text).or_else(|_| {
        // A snippet of the text would make the message span several lines.
        let options = serde_saphyr::options! { with_snippet: false };
        let parsed = serde_saphyr::from_str_with_options(text, options);
        parsed.map_err(|error| FieldError::new("", error.to_string()))
    })
}

/// Adds the file with the document. `inline_name` is the ConfigMap of inline policies.
pub(crate) fn add_volumes(config: &AuthzConfig, inline_name: &str, volumes: &mut Volumes) {
    let (name, key) = match (config.type_(), &config.config_map) {
        (AuthzConfigType::Inline, _) => (inline_name, paths::AUTHZ_FILE),
        (AuthzConfigType::ConfigMap, Some(map)) => (map.name.as_str(), map.key()),
        (AuthzConfigType::ConfigMap, None) => return,
    };
    volumes.config_map(VOLUME, name, Some((key, paths::AUTHZ_FILE)), paths::AUTHZ_FOLDER);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config_refs::samples::{fields as fields_of, mounts, sample};

    const POLICY: &str = "permit(principal, action, resource);";

    fn inline_config(fields: Value) -> AuthzConfig {
        let mut config = json!({"type": "inline", "inline": {"policies": [POLICY]}});
        config.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        sample(config)
    }

    fn config_map(fields: Value) -> AuthzConfig {
        let mut config = json!({"type": "configMap", "configMap": {"name": "rules"}});
        config.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        sample(config)
    }

    fn read(document: &Json) -> Value {
        document.read().unwrap()
    }

    #[test]
    fn the_document_of_inline_policies_has_the_names_of_claims() {
        let document =
            inline_document(&inline_config(json!({"groupClaimName": "teams", "groupEntityType": "Team"})));
        let expected = json!({"version": "1.0", "type": "cedarv1", "cedar": {
            "policies": [POLICY], "entities_json": "[]", "group_claim_name": "teams", "group_entity_type": "Team",
        }});
        assert_eq!(read(&document.unwrap()), expected);
    }

    #[test]
    fn the_document_of_inline_policies_has_no_upstream_provider() {
        let inline = json!({"policies": [POLICY], "primaryUpstreamProvider": "corp"});
        let document = inline_document(&inline_config(json!({"inline": inline}))).unwrap();
        assert_eq!(document, inline_document(&inline_config(json!({}))).unwrap());
    }

    #[test]
    fn the_file_of_inline_policies_is_compact_with_sorted_keys() {
        let inline = json!({"policies": ["permit(principal, action, resource) when {1 < 2};"]});
        let file = inline_file(&inline_config(json!({"inline": inline, "roleClaimName": "roles"}))).unwrap();
        let expected = concat!(
            r#"{"cedar":{"entities_json":"[]","policies":["permit(principal, action, resource) when {1 \u003c 2};"]},"#,
            r#""type":"cedarv1","version":"1.0"}"#,
        );
        assert_eq!(file, expected);
    }

    #[test]
    fn a_config_map_holds_yaml_or_json() {
        let yaml = "version: '1.0'\ntype: cedarv1\ncedar:\n  policies:\n    - permit(principal, action, resource);\n";
        let json = concat!(
            "{\n\t\"version\": \"1.0\", \"type\": \"cedarv1\",\n",
            "\t\"cedar\": {\"policies\": [\"permit(principal, action, resource);\"]}}",
        );
        let expected = json!({"version": "1.0", "type": "cedarv1", "cedar": {"policies": [POLICY]}});
        for text in [yaml, json] {
            assert_eq!(read(&config_map_document(&config_map(json!({})), text).unwrap()), expected);
        }
    }

    #[test]
    fn claims_of_the_workload_replace_those_of_the_document() {
        let text = format!(
            "{{type: cedarv1, cedar: {{policies: ['{POLICY}'], group_claim_name: a, role_claim_name: b}}}}"
        );
        let config = config_map(json!({"groupClaimName": "teams", "roleClaimName": ""}));
        let cedar = json!({"policies": [POLICY], "group_claim_name": "teams", "role_claim_name": "b"});
        let document = config_map_document(&config, &text).unwrap();
        assert_eq!(read(&document), json!({"version": "1.0", "type": "cedarv1", "cedar": cedar}));
    }

    #[test]
    fn an_invalid_document_is_rejected_with_the_place_of_each_mistake() {
        for (text, error) in [
            ("policies", ""),
            ("a: [", ""),
            ("type: opa", "type: \"opa\" "),
            ("type: cedarv1", "cedar: "),
            ("{type: cedarv1, cedar: {policies: []}}", "cedar.policies: "),
            ("{type: cedarv1, cedar: {policies: [a], Policies: [b]}}", "cedar: duplicate field `policies`"),
            (
                "{type: cedarv1, cedar: {policies: ['permit(principal, action, resource);']}, Cedar: {}}",
                "document: duplicate field `cedar`",
            ),
            (
                "{type: cedarv1, cedar: {policies: [permit]}}",
                "cedar.policies[0]: line 1, column 7, after `permit`: ",
            ),
            ("{type: httpv1, pdp: {http: {url: x}}}", "pdp.http.url: \"x\" "),
        ] {
            let message = config_map_document(&config_map(json!({})), text).unwrap_err().to_string();
            let place = "authzConfig.configMap: ConfigMap \"rules\", key \"authz.json\": ";
            assert!(message.starts_with(&format!("{place}{error}")), "{message}");
            assert_eq!(message.lines().count(), 1, "{message}");
        }
        let text = "{type: cedarv1, cedar: {policies: [permit, forbid]}}";
        let error = config_map_document(&config_map(json!({})), text).unwrap_err();
        assert_eq!(error.field.to_string(), "authzConfig.configMap");
        assert!(error.message.contains("; cedar.policies[1]: "), "{error}");
    }

    #[test]
    fn a_mistake_in_an_inline_document_has_the_field_of_the_workload() {
        for (fields, field) in [
            (json!({"inline": {"policies": [POLICY, "permit"]}}), "authzConfig.inline.policies[1]"),
            (
                json!({"inline": {"policies": [POLICY], "entitiesJson": "[{}]"}}),
                "authzConfig.inline.entitiesJson[0]",
            ),
            (json!({"groupEntityType": "A::B"}), "authzConfig.groupEntityType"),
        ] {
            assert_eq!(fields_of(&inline_document(&inline_config(fields)).unwrap_err()), [field]);
        }
        let all = json!({"inline": {"policies": ["permit", "forbid"], "entitiesJson": "{}"}});
        let expected = ["policies[0]", "policies[1]", "entitiesJson"];
        assert_eq!(
            fields_of(&inline_document(&inline_config(all)).unwrap_err()),
            expected.map(|field| format!("authzConfig.inline.{field}"))
        );
    }

    #[test]
    fn the_file_is_mounted_from_the_config_map_of_the_policies() {
        let volume = |config: &AuthzConfig| {
            let mut volumes = Volumes::default();
            add_volumes(config, "files-authz-inline", &mut volumes);
            let source = volumes.volumes.remove(0).config_map.unwrap();
            (source.name, source.items.unwrap().remove(0).key)
        };
        let own = ("files-authz-inline".into(), "authz.json".into());
        assert_eq!(volume(&inline_config(json!({}))), own);
        let others = config_map(json!({"configMap": {"name": "rules", "key": "main.yaml"}}));
        assert_eq!(volume(&others), ("rules".into(), "main.yaml".into()));
        let mounted = ["authz-config /etc/toolhive/authz"];
        assert_eq!(mounts(|volumes| add_volumes(&others, "", volumes)), mounted);
    }
}
