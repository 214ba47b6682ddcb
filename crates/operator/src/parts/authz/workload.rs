//! Policies that a workload brings itself, written into it or in a ConfigMap.

use serde_json::{Map, Value, json};
use skep_api::authz::{AuthzConfig, AuthzConfigType, InlineAuthz};
use skep_authz::Backend;
use skep_config::{
    Json, paths,
    run_config::{AuthzDocument, Cedar},
};

use super::{
    backend::{backend, check, check_cedar},
    written, written_sorted,
};
use crate::{
    build::Volumes,
    parts::{said, text},
};

const VOLUME: &str = "authz-config";

/// The document of policies that are written into the workload.
pub(crate) fn inline_document(config: &AuthzConfig) -> Result<Json, String> {
    let inline = inline(config)?;
    let cedar = Cedar {
        policies: inline.policies.clone(),
        entities_json: inline.entities_json().into(),
        group_claim_name: text(&config.group_claim_name),
        role_claim_name: text(&config.role_claim_name),
        group_entity_type: text(&config.group_entity_type),
        ..Cedar::default()
    };
    check_cedar("authzConfig.inline", &cedar)?;
    written(&AuthzDocument::with_cedar(cedar))
}

/// The file that goes with it, for people to look at: the proxy takes the document from its RunConfig.
pub(crate) fn inline_file(config: &AuthzConfig) -> Result<String, String> {
    let inline = inline(config)?;
    let file = json!({
        "cedar": {"entities_json": inline.entities_json(), "policies": inline.policies},
        "type": AuthzDocument::CEDAR,
        "version": AuthzDocument::VERSION,
    });
    written_sorted(file).map(|file| file.as_str().into())
}

fn inline(config: &AuthzConfig) -> Result<&InlineAuthz, String> {
    config.inline.as_ref().ok_or_else(|| "authzConfig.inline: set it, as type is inline".into())
}

/// The document in the text of a ConfigMap's key, YAML or JSON, with the claims that the workload names instead.
pub(crate) fn config_map_document(config: &AuthzConfig, text: &str) -> Result<Json, String> {
    let place =
        config.config_map.as_ref().map(|map| format!("ConfigMap {:?}, key {:?}", map.name, map.key()));
    let place = place.unwrap_or_default();
    let at = |error| format!("authzConfig.configMap: {place}: {error}");
    let mut document = parsed(text).map_err(at)?;
    let type_ = document.get("type").and_then(Value::as_str).unwrap_or_default();
    let backend = backend(type_).map_err(at)?;
    let key = backend.key();
    let settings = document.get_mut(key).ok_or_else(|| at(format!("{key}: set what the type needs")))?;
    check(backend, key, settings).map_err(at)?;
    if let (Backend::Cedar, Some(cedar)) = (backend, settings.as_object_mut()) {
        let claims = [
            ("group_claim_name", &config.group_claim_name),
            ("role_claim_name", &config.role_claim_name),
            ("group_entity_type", &config.group_entity_type),
        ];
        let named = claims.iter().filter_map(|(key, value)| Some((*key, said(value)?)));
        cedar.extend(named.map(|(key, value)| (key.into(), value.into())));
    }
    document.entry("version").or_insert_with(|| AuthzDocument::VERSION.into());
    written_sorted(Value::Object(document))
}

fn parsed(text: &str) -> Result<Map<String, Value>, String> {
    // JSON may be indented by tabs, which YAML forbids.
    serde_json::from_str(text).or_else(|_| {
        // A snippet of the text would make the message one of many lines.
        let options = serde_saphyr::options! { with_snippet: false };
        serde_saphyr::from_str_with_options(text, options).map_err(|error| error.to_string())
    })
}

/// Adds the file with the document. `inline_name` is the ConfigMap for policies that are written into the workload.
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
    use crate::parts::samples::{mounts, sample};

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
    fn inline_policies_come_with_the_names_of_claims() {
        let document =
            inline_document(&inline_config(json!({"groupClaimName": "teams", "groupEntityType": "Team"})));
        let expected = json!({"version": "1.0", "type": "cedarv1", "cedar": {
            "policies": [POLICY], "entities_json": "[]", "group_claim_name": "teams", "group_entity_type": "Team",
        }});
        assert_eq!(read(&document.unwrap()), expected);
    }

    #[test]
    fn inline_policies_name_no_upstream_provider() {
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
    fn a_document_that_does_not_do_is_refused_with_its_place() {
        for (text, error) in [
            ("policies", ""),
            ("a: [", ""),
            ("type: opa", "type: \"opa\" "),
            ("type: cedarv1", "cedar: "),
            ("{type: cedarv1, cedar: {policies: []}}", "cedar.policies: "),
            (
                "{type: cedarv1, cedar: {policies: [permit]}}",
                "cedar.policies[0]: line 1, column 7, after `permit`: ",
            ),
            ("{type: httpv1, pdp: {http: {url: x}}}", "pdp.http.url: \"x\" "),
        ] {
            let message = config_map_document(&config_map(json!({})), text).unwrap_err();
            let place = "authzConfig.configMap: ConfigMap \"rules\", key \"authz.json\": ";
            assert!(message.starts_with(&format!("{place}{error}")), "{message}");
            assert_eq!(message.lines().count(), 1, "{message}");
        }
    }

    #[test]
    fn the_file_is_mounted_from_where_the_policies_are() {
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
