//! A cluster with objects of ToolHive's operator is taken over, and no pod rolls.

use crate::kinds::VirtualServers;
use std::{collections::BTreeMap, path::Path};

use kube::core::DynamicObject;
use serde_json::{Value, json};
use skep_config::{annotations::CONTENT_CHECKSUM, labels};
use skep_converge::Kind;
use skep_world::Watched;

use super::golden;
use crate::fixture::{Fixture, conditions};

/// A golden child as ToolHive's operator would have written it here: for this owner, in this namespace.
fn as_written(mut object: Value, owner_uid: &str, checksums: &BTreeMap<String, String>) -> Value {
    object["metadata"]["ownerReferences"][0]["uid"] = json!(owner_uid);
    if let Some(spec) = object["spec"].as_object_mut() {
        for key in ["clusterIP", "clusterIPs"] {
            spec.remove(key);
        }
    }
    if object["kind"] == "Secret" {
        object["data"]["hmac-secret"] = json!("UkFORE9N");
    }
    for port in object.pointer_mut("/spec/ports").and_then(Value::as_array_mut).into_iter().flatten() {
        port.as_object_mut().unwrap().remove("nodePort");
    }
    let mut text = object.to_string();
    for (golden, here) in checksums {
        text = text.replace(golden, here);
    }
    serde_json::from_str(&text).unwrap()
}

/// The ConfigMaps with the configuration of pods, each with the checksum in its annotation.
fn config_maps(children: &[Value]) -> impl Iterator<Item = (String, &Value)> {
    let is_config = |child: &&Value| child["metadata"]["labels"].get(labels::COMPONENT).is_some();
    children.iter().filter(is_config).map(|config_map| {
        let annotated = config_map["metadata"]["annotations"][CONTENT_CHECKSUM].as_str();
        (annotated.unwrap().to_owned(), config_map)
    })
}

/// The checksum of a ConfigMap as it is.
fn checksum(config_map: &Value) -> String {
    let map =
        |value: &Value| serde_json::from_value::<BTreeMap<String, String>>(value.clone()).unwrap_or_default();
    let (data, labels) = (map(&config_map["data"]), map(&config_map["metadata"]["labels"]));
    skep_config::checksum(&data, &labels, &BTreeMap::new())
}

/// A namespace as ToolHive's operator left it, without an operator: the objects that it reconciled, and their
/// children.
pub(super) async fn left_by_toolhive(folder: &Path) -> (Fixture, Vec<(Kind, String)>, Vec<Value>) {
    let fixture = Fixture::with(golden::settings()).await.stopped().await;
    let names = golden::create_inputs(&fixture.test, folder).await;
    let mut children = golden::children(folder, fixture.test.name(), &names);
    // As they must be where a configuration names the namespace.
    let checksums: BTreeMap<String, String> =
        config_maps(&children).map(|(annotated, child)| (annotated, checksum(child))).collect();
    for child in &mut children {
        let owner = &child["metadata"]["ownerReferences"][0];
        let kind = golden::kind_of(owner).unwrap();
        let owner = fixture.object(kind, owner["name"].as_str().unwrap()).await.unwrap();
        *child = as_written(child.take(), &owner.metadata.uid.unwrap(), &checksums);
        golden::create_as(&fixture.test, "thv-operator", child).await;
    }
    report_as_toolhive(&fixture, folder, &names).await;
    (fixture, names, children)
}

/// The object once the operator has reported its status and is idle. It may not have started yet.
pub(super) async fn taken_over(fixture: &Fixture, kind: Kind, name: &str) -> DynamicObject {
    let is_ours = |object: &DynamicObject| !conditions(object).contains_key(FORGOTTEN);
    fixture.until_object(kind, name, "reported on", is_ours).await;
    fixture.settle_any(kind, name).await
}

/// A condition that ToolHive has reported and that does not exist here.
const FORGOTTEN: &str = "Forgotten";

#[tokio::test]
#[ignore = "reads the folder that SKEP_COMPAT names"]
async fn objects_of_toolhive_are_taken_over_and_no_pod_rolls() {
    golden::each(async |folder| taken_over_as_it_is(&folder).await).await;
}

async fn taken_over_as_it_is(folder: &Path) {
    let (fixture, names, children) = left_by_toolhive(folder).await;
    let fixture = fixture.restart().await;
    for (kind, name) in &names {
        let object = taken_over(&fixture, *kind, name).await;
        status_is_ours(&object, &format!("{}: {} {name}", folder.display(), kind.kind));
    }
    let rolled = rolled(&fixture, &children).await;
    for child in &children {
        let (kind, name) = (child["kind"].as_str().unwrap(), child["metadata"]["name"].as_str().unwrap());
        let live = golden::api(&fixture.test, child).get(name).await.unwrap();
        let what = format!("{}: {kind} {name}", folder.display());
        if matches!(kind, "Deployment" | "StatefulSet") {
            let expected = golden::without_duplicate_variables(child.clone());
            // Documented in docs/compatibility.md: some configurations differ, and roll the pods once.
            let mut text = expected.to_string();
            rolled.iter().for_each(|(theirs, ours)| text = text.replace(theirs, ours));
            let expected: Value = serde_json::from_str(&text).unwrap();
            let template = |object: &Value| object["spec"]["template"].clone();
            similar_asserts::assert_eq!(template(&live.data), template(&expected), "{what} has other pods");
            // Documented in docs/compatibility.md: the hash of the volumes is new. An annotation counts as a change of the
            // Deployment, and not of its pods.
            let hashed = child["metadata"]["ownerReferences"][0]["kind"] == VirtualServers::kind().kind;
            let changes = if hashed || expected != *child { 1 } else { 0 };
            assert_eq!(live.metadata.generation, Some(1 + changes), "{what} was changed");
        }
        let managers =
            live.metadata.managed_fields.iter().flatten().filter_map(|entry| entry.manager.as_deref());
        let owner = &child["metadata"]["ownerReferences"][0]["kind"];
        // A Secret with a random value stays as it was created.
        let manager = match kind {
            "Secret" => "thv-operator".to_owned(),
            _ => format!("skep-{}", owner.as_str().unwrap().to_lowercase()),
        };
        assert_eq!(managers.collect::<Vec<_>>(), [manager], "{what} has one owner");
    }
    later_removals_work(&fixture, &names).await;
    fixture.operator.stop().await;
}

/// The checksums of the configurations that differ here, by ToolHive's. All others still have ToolHive's text.
async fn rolled(fixture: &Fixture, children: &[Value]) -> BTreeMap<String, String> {
    let mut rolled = BTreeMap::new();
    for (theirs, child) in config_maps(children) {
        let name = child["metadata"]["name"].as_str().unwrap();
        let live = golden::api(&fixture.test, child).get(name).await.unwrap();
        let live = serde_json::to_value(live).unwrap();
        assert_eq!(live["metadata"]["annotations"][CONTENT_CHECKSUM], *checksum(&live), "{name}");
        if golden::with_our_configuration(child.clone()) == *child {
            assert_eq!(live["data"], child["data"], "{name} has another text");
        } else {
            rolled.insert(theirs, checksum(&live));
        }
    }
    rolled
}

/// Marks each object and writes its golden status as ToolHive's operator did.
async fn report_as_toolhive(fixture: &Fixture, folder: &Path, names: &[(Kind, String)]) {
    for mut theirs in golden::documents(&folder.join("status.yaml"), fixture.test.name()) {
        let name = theirs["name"].as_str().unwrap().to_owned();
        let Some((kind, _)) = names.iter().find(|(kind, n)| theirs["kind"] == *kind.kind && *n == name)
        else {
            continue;
        };
        fixture.patch_any(*kind, &name, json!({"metadata": {"finalizers": theirs["finalizers"]}})).await;
        if theirs["status"].is_null() {
            continue;
        }
        // The golden files leave times and messages out.
        let mut conditions = theirs["status"]["conditions"].as_array().cloned().unwrap_or_default();
        for condition in &mut conditions {
            condition["lastTransitionTime"] = json!("2026-01-01T00:00:00Z");
            condition["message"] = json!("");
        }
        conditions.push(condition(FORGOTTEN));
        theirs["status"]["conditions"] = json!(conditions);
        fixture.report_as("thv-operator", *kind, &name, &theirs["status"]).await;
    }
}

fn condition(type_: &str) -> Value {
    json!({"type": type_, "status": "True", "reason": "Old", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"})
}

fn status_is_ours(object: &DynamicObject, what: &str) {
    assert!(!conditions(object).contains_key(FORGOTTEN), "{what}: {:#}", object.data["status"]);
    let entries = object.metadata.managed_fields.iter().flatten();
    let reporters = entries.filter(|entry| entry.subresource.as_deref() == Some("status"));
    let reporters: Vec<_> = reporters.filter_map(|entry| entry.manager.as_deref()).collect();
    assert_eq!(reporters.len(), 1, "{what} is reported by {reporters:?}");
    assert!(reporters[0].starts_with("skep-"), "{what} is reported by {reporters:?}");
}

/// Fields of ToolHive that are no longer desired are removed, as if they were ours.
async fn later_removals_work(fixture: &Fixture, names: &[(Kind, String)]) {
    for (kind, name) in names {
        let object = fixture.object(*kind, name).await.unwrap();
        if object.data["spec"]["resourceOverrides"].is_null() {
            continue;
        }
        let patch = json!({"spec": {"resourceOverrides": null, "podTemplateSpec": null}});
        fixture.patch_any(*kind, name, patch).await;
        fixture.settle_any(*kind, name).await;
        let deployment = fixture.deployment(name).await;
        assert_eq!(deployment.metadata.annotations.unwrap_or_default().len(), 0, "{name}");
        assert_eq!(deployment.metadata.labels.unwrap().len(), 5, "{name}");
    }
}
