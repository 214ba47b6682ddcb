//! A cluster with objects of ToolHive's operator is taken over, and no pod rolls.

use crate::kinds::VirtualServers;
use std::{collections::BTreeMap, path::Path};

use kube::core::DynamicObject;
use serde_json::{Value, json};
use skep_config::{annotations::CONTENT_CHECKSUM, labels};
use skep_converge::Kind;
use skep_operator::settings::Settings;
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
pub(super) async fn left_by_toolhive(
    folder: &Path,
    settings: Settings,
) -> (Fixture, Vec<(Kind, String)>, Vec<Value>) {
    let fixture = Fixture::with(settings).await.stopped().await;
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
    let waiting = golden::each(async |folder| taken_over_as_it_is(&folder).await).await.concat();
    assert_eq!(waiting.len(), 3, "docs/compatibility.md lists what waits for a rollout: {waiting:#?}");
}

#[tokio::test]
#[ignore = "reads the folder that SKEP_COMPAT names"]
async fn a_default_installation_of_toolhive_is_taken_over_as_it_is() {
    let folders = golden::folders_of_default_installation();
    let waiting = golden::each_of(folders, async |folder| taken_over_as_it_is(&folder).await).await.concat();
    // Documented in docs/compatibility.md: a variable that is there twice.
    assert_eq!(waiting, ["remote_full: MCPRemoteProxy remote"]);
}

/// Takes everything of a folder over. Returns the objects whose pods would have to be replaced.
async fn taken_over_as_it_is(folder: &Path) -> Vec<String> {
    let (fixture, names, children) = left_by_toolhive(folder, golden::settings()).await;
    let fixture = fixture.restart().await;
    let mut waiting = Vec::new();
    for (kind, name) in &names {
        let object = taken_over(&fixture, *kind, name).await;
        let what = format!("{}: {} {name}", folder.display(), kind.kind);
        status_is_ours(&object, &what);
        if conditions(&object).contains_key("RolloutPending") {
            waiting.push(format!("{} {name}", kind.kind));
        }
    }
    for child in &children {
        let (kind, name) = (child["kind"].as_str().unwrap(), child["metadata"]["name"].as_str().unwrap());
        let live = golden::api(&fixture.test, child).get(name).await.unwrap();
        let what = format!("{}: {kind} {name}", folder.display());
        let owner = &child["metadata"]["ownerReferences"][0];
        let owner_kind = owner["kind"].as_str().unwrap();
        let waits = waiting.contains(&format!("{owner_kind} {}", owner["name"].as_str().unwrap()));
        let runs_pods = matches!(kind, "Deployment" | "StatefulSet");
        if runs_pods {
            let template = |object: &Value| object["spec"]["template"].clone();
            let expected =
                if waits { child.clone() } else { golden::without_duplicate_variables(child.clone()) };
            similar_asserts::assert_eq!(template(&live.data), template(&expected), "{what} has other pods");
            // Documented in docs/compatibility.md: the hash of the volumes is new. An annotation counts as a change of the
            // Deployment, and not of its pods.
            let changes = i64::from(!waits && owner_kind == VirtualServers::kind().kind);
            assert_eq!(live.metadata.generation, Some(1 + changes), "{what} was changed");
        }
        let configures_pods = child["metadata"]["labels"].get(labels::COMPONENT).is_some();
        if configures_pods {
            assert_eq!(live.data["data"], child["data"], "{what} has another text");
        }
        let managers =
            live.metadata.managed_fields.iter().flatten().filter_map(|entry| entry.manager.as_deref());
        // A Secret with a random value stays as it was created.
        let is_left = kind == "Secret" || waits && (runs_pods || configures_pods);
        let manager = match is_left {
            true => "thv-operator".to_owned(),
            false => format!("skep-{}", owner_kind.to_lowercase()),
        };
        assert_eq!(managers.collect::<Vec<_>>(), [manager], "{what} has one owner");
    }
    later_removals_work(&fixture, &names).await;
    fixture.operator.stop().await;
    let folder = folder.file_name().unwrap().to_string_lossy();
    waiting.iter().map(|object| format!("{folder}: {object}")).collect()
}

/// Marks each object and writes its golden status as ToolHive's operator did.
async fn report_as_toolhive(fixture: &Fixture, folder: &Path, names: &[(Kind, String)]) {
    let file = folder.join("status.yaml");
    if !file.exists() {
        return;
    }
    for mut theirs in golden::documents(&file, fixture.test.name()) {
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
