//! The definitions themselves.

use serde_json::Value;
use skep_api::{crd, refs::REFERENCES};

use crate::constraints::{Step, walk};

fn schemas() -> Vec<(String, Value)> {
    let crds = crd::crds().unwrap();
    let json = crds.iter().map(|crd| crd::to_json(crd).unwrap());
    json.flat_map(|crd| {
        let kind = crd["spec"]["names"]["kind"].as_str().unwrap().to_owned();
        let versions = crd["spec"]["versions"].as_array().unwrap().clone();
        versions.into_iter().map(move |version| {
            let name = format!("{kind} {}", version["name"].as_str().unwrap());
            (name, version["schema"]["openAPIV3Schema"].clone())
        })
    })
    .collect()
}

#[test]
fn the_kinds_are_sorted_by_name() {
    let crds = crd::crds().unwrap();
    let kinds: Vec<&str> = crds.iter().map(|crd| crd.spec.names.kind.as_str()).collect();
    assert!(kinds.is_sorted(), "{kinds:?}");
}

#[test]
fn both_versions_of_a_kind_have_one_schema() {
    for crd in crd::crds().unwrap() {
        let [first, rest @ ..] = crd.spec.versions.as_slice() else { panic!("a version") };
        assert!(rest.iter().all(|version| version.schema == first.schema), "{}", crd.spec.names.kind);
    }
}

#[test]
fn every_field_is_explained() {
    for (kind, schema) in schemas() {
        walk(&schema, &mut |path, schema| {
            let explained = schema["description"]
                .as_str()
                .is_some_and(|text| text.ends_with(['.', ':']) || text.contains("Possible values"));
            let own_meaning = matches!(path.last(), Some(Step::Field(name)) if name != "metadata");
            assert!(explained || !own_meaning, "{kind}: {} has no description", Step::join(path));
        });
    }
}

#[test]
fn every_rule_has_a_message_with_what_to_do() {
    for (kind, schema) in schemas() {
        walk(&schema, &mut |path, schema| {
            for rule in schema["x-kubernetes-validations"].as_array().into_iter().flatten() {
                let message = rule["message"].as_str().unwrap_or_default();
                assert!(message.len() > 20, "{kind}: {}: {rule}", Step::join(path));
            }
        });
    }
}

#[test]
fn the_kinds_that_run_proxies_can_be_scaled() {
    for crd in crd::crds().unwrap() {
        let kind = crd.spec.names.kind.as_str();
        let scalable = matches!(kind, "MCPServer" | "MCPRemoteProxy" | "VirtualMCPServer");
        for version in &crd.spec.versions {
            let scale = version.subresources.as_ref().and_then(|subresources| subresources.scale.as_ref());
            assert_eq!(scale.is_some(), scalable, "{kind}");
        }
    }
}

/// References to Kubernetes' own objects, which need no index: the operator reads these by name.
const BUILTIN_REFERENCES: [&str; 4] = ["ConfigMapRef", "SecretRef", "SecretRefs", "passwordRef"];

#[test]
fn every_reference_to_a_kind_of_the_api_is_indexed() {
    for (kind, schema) in schemas() {
        walk(&schema, &mut |path, schema| {
            let Some(Step::Field(field)) = path.last() else { return };
            let target = if schema["type"] == "array" { &schema["items"] } else { schema };
            let is_reference = field.ends_with("Ref") || field.ends_with("Refs");
            let is_builtin = target["properties"].get("key").is_some()
                || BUILTIN_REFERENCES.iter().any(|suffix| field.ends_with(suffix));
            if is_reference && target["properties"].get("name").is_some() && !is_builtin {
                let indexed = REFERENCES.iter().any(|(name, _)| name == field);
                assert!(indexed, "{kind}: {} is not in skep_api::refs::REFERENCES", Step::join(path));
            }
        });
    }
    let kinds: Vec<String> = crd::crds().unwrap().into_iter().map(|crd| crd.spec.names.kind).collect();
    for (field, kind) in REFERENCES {
        assert!(kinds.iter().any(|known| known == kind), "{field} refers to {kind}, which does not exist");
    }
}
