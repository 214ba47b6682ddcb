//! The same objects and the same status, except for what docs/compatibility.md documents.

use crate::kinds::{EmbeddingServers, Groups, Registries, VirtualServers};
use std::{collections::BTreeMap, path::Path};

use serde_json::{Value, json};
use skep_config::{annotations, labels, paths};
use skep_converge::Kind;
use skep_world::Watched;

use super::golden;
use crate::fixture::{Fixture, without_checksums};

/// What we do not control: identities, times, and what the cluster assigns.
fn comparable(mut object: Value, namespace: &str) -> Value {
    let metadata = object["metadata"].as_object_mut().unwrap();
    for key in ["uid", "resourceVersion", "creationTimestamp", "managedFields", "generation", "selfLink"] {
        metadata.remove(key);
    }
    for owner in metadata.get_mut("ownerReferences").and_then(Value::as_array_mut).into_iter().flatten() {
        owner["uid"] = json!("UID");
    }
    object.as_object_mut().unwrap().remove("status");
    // New here, documented in docs/compatibility.md.
    if let Some(annotations) = object.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
        annotations.remove(annotations::POD_VOLUMES_HASH);
        if annotations.is_empty() {
            object["metadata"].as_object_mut().unwrap().remove("annotations");
        }
    }
    if object["kind"] == "Secret" {
        object["data"]["hmac-secret"] = json!("RANDOM");
    }
    for port in object.pointer_mut("/spec/ports").and_then(Value::as_array_mut).into_iter().flatten() {
        port.as_object_mut().unwrap().remove("nodePort");
    }
    if let Some(spec) = object["spec"].as_object_mut() {
        for key in ["clusterIP", "clusterIPs"] {
            spec.remove(key);
        }
    }
    let text = object.to_string().replace(namespace, "NS");
    // A checksum is over the namespace's name as well.
    serde_json::from_str(&without_checksums(&text)).unwrap()
}

/// Configuration files as values: their layout means nothing.
fn with_parsed_files(mut object: Value) -> Value {
    if object["metadata"]["labels"].get(labels::COMPONENT).is_none() {
        return object;
    }
    for file in paths::CONFIG_FILES {
        if let Some(text) = object["data"][file].as_str() {
            object["data"][file] = serde_saphyr::from_str(text).unwrap();
        }
    }
    object
}

fn difference(what: &str, theirs: &Value, ours: &Value) -> Option<String> {
    let pretty = |value: &Value| serde_json::to_string_pretty(value).unwrap();
    let (left, right) = (pretty(theirs), pretty(ours));
    let diff = || similar_asserts::SimpleDiff::from_str(&left, &right, "theirs", "ours").to_string();
    (theirs != ours).then(|| format!("{what}:\n{}", diff()))
}

async fn differences(folder: &Path) -> Vec<String> {
    let fixture = Fixture::with(golden::settings()).await;
    let namespace = fixture.test.name().to_owned();
    let names = golden::create_inputs(&fixture.test, folder).await;
    for (kind, name) in &names {
        fixture.settle_any(*kind, name).await;
    }
    let mut differences = Vec::new();
    let children = golden::children(folder, &namespace, &names);
    let with_auth_server = golden::with_auth_server(&children);
    for theirs in children {
        let (kind, name) = (theirs["kind"].as_str().unwrap(), theirs["metadata"]["name"].as_str().unwrap());
        let what = format!("{kind} {name}");
        let Some(ours) = golden::api(&fixture.test, &theirs).get_opt(name).await.unwrap() else {
            differences.push(format!("{what} is missing"));
            continue;
        };
        let ours = with_parsed_files(comparable(serde_json::to_value(ours).unwrap(), &namespace));
        let theirs =
            golden::with_our_configuration(golden::without_duplicate_variables(golden::with_reports(theirs)));
        let theirs = golden::with_reviews(golden::with_least_rights(theirs), &with_auth_server);
        let theirs = with_parsed_files(comparable(theirs, &namespace));
        differences.extend(difference(&what, &theirs, &ours));
    }
    differences.extend(status_differences(&fixture, folder, &names).await);
    fixture.operator.stop().await;
    differences
}

async fn status_differences(fixture: &Fixture, folder: &Path, names: &[(Kind, String)]) -> Vec<String> {
    let mut differences = Vec::new();
    for theirs in golden::documents(&folder.join("status.yaml"), fixture.test.name()) {
        let (kind, name) = (theirs["kind"].as_str().unwrap(), theirs["name"].as_str().unwrap());
        if !names.iter().any(|(ours, other)| ours.kind == kind && other == name) {
            continue;
        }
        let ours = fixture.object(golden::kind_of(&theirs).unwrap(), name).await.unwrap();
        // Documented in docs/compatibility.md: these need no finalizer.
        if ![Groups::kind().kind, EmbeddingServers::kind().kind, Registries::kind().kind].contains(&kind) {
            let finalizers = ours.metadata.finalizers.clone().unwrap_or_default();
            assert_eq!(json!(finalizers), theirs["finalizers"], "{kind} {name}");
        }
        let what = format!("the status of {kind} {name}");
        let (mut theirs, mut ours) = (theirs["status"].clone(), ours.data["status"].clone());
        if kind == VirtualServers::kind().kind && theirs["url"].is_null() {
            drop_additional_status(&mut theirs, &mut ours);
        }
        differences.extend(difference(&what, &summary(kind, &theirs), &summary(kind, &ours)));
    }
    differences
}

/// Documented in docs/compatibility.md: a waiting server reports that it is not ready, and its future address.
fn drop_additional_status(theirs: &mut Value, ours: &mut Value) {
    for status in [theirs, ours] {
        status.as_object_mut().unwrap().remove("url");
        let conditions = status["conditions"].as_array_mut().unwrap();
        conditions.retain(|condition| condition["type"] != "Ready");
    }
}

/// Conditions are compared by type, status and reason; hashes by whether they exist.
fn summary(kind: &str, status: &Value) -> Value {
    let conditions = status["conditions"].as_array().into_iter().flatten();
    // Documented in docs/compatibility.md: missing Secrets of a configuration, policies that never apply, logins that replicas do not
    // share, and two tools with one name are reported.
    let new = ["ReferencesResolved", "PolicyWarning", "AuthServerStorageWarning", "ToolNameWarning"];
    let is_new = |condition: &Value| new.iter().any(|kind| condition["type"] == *kind);
    let conditions = conditions.filter(|condition| !is_new(condition));
    // The same: only here does an EmbeddingServer have the condition Ready.
    let silent = kind == EmbeddingServers::kind().kind;
    let conditions = conditions.filter(|condition| !silent || condition["type"] != "Ready");
    let conditions: BTreeMap<String, String> = conditions
        .map(|c| (c["type"].as_str().unwrap().into(), format!("{} {}", c["status"], c["reason"])))
        .collect();
    let mut rest = status.as_object().cloned().unwrap_or_default();
    // New here, or with our own messages.
    for key in ["conditions", "message", "selector", "referencingWorkloads"] {
        rest.remove(key);
    }
    // Documented in docs/compatibility.md: here they are set on a server that cannot run, too.
    if rest.get("phase") == Some(&json!("Failed")) {
        rest.remove("observedGeneration");
        rest.remove("url");
    }
    // The same: ToolHive writes its finalizer with the whole object, whose spec then has empty fields that it had not,
    // and is of another generation.
    if silent {
        rest.remove("observedGeneration");
    }
    for (key, value) in &mut rest {
        if key.ends_with("Hash") {
            *value = json!("there");
        }
    }
    json!({"conditions": conditions, "rest": rest})
}

#[tokio::test]
#[ignore = "reads the folder that SKEP_COMPAT names"]
async fn the_children_and_the_status_of_every_golden_object_equal_those_of_toolhive() {
    let failures = golden::each(async |folder| {
        let texts = differences(&folder).await.into_iter();
        texts.map(|text| format!("{}: {text}", folder.display())).collect::<Vec<_>>()
    });
    let failures = failures.await.concat();
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}
