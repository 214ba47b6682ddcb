//! The definitions themselves.

use serde_json::Value;
use skep_api::crd;

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
fn there_are_fourteen_kinds_sorted_by_name() {
    let crds = crd::crds().unwrap();
    let kinds: Vec<&str> = crds.iter().map(|crd| crd.spec.names.kind.as_str()).collect();
    assert_eq!(kinds.len(), 14);
    assert!(kinds.is_sorted());
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
fn every_rule_says_what_to_do() {
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
