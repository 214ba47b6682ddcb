//! A cluster that ToolHive's operator has filled is taken over, and no pod rolls.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use skep_converge::Kind;

use super::golden;
use crate::fixture::Fixture;

/// A golden child as ToolHive's operator would have written it here: for this owner, in this namespace.
fn as_written(mut object: Value, owner_uid: &str, checksums: &BTreeMap<String, String>) -> Value {
    object["metadata"]["ownerReferences"][0]["uid"] = json!(owner_uid);
    if let Some(spec) = object["spec"].as_object_mut() {
        for key in ["clusterIP", "clusterIPs"] {
            spec.remove(key);
        }
    }
    let mut text = object.to_string();
    for (golden, here) in checksums {
        text = text.replace(golden, here);
    }
    serde_json::from_str(&text).unwrap()
}

/// The checksums of run configurations, as they are and as they must be where a configuration names the namespace.
fn checksums(children: &[Value]) -> BTreeMap<String, String> {
    let map =
        |value: &Value| serde_json::from_value::<BTreeMap<String, String>>(value.clone()).unwrap_or_default();
    let config_maps = children.iter().filter(|child| child["data"]["runconfig.json"].is_string());
    config_maps
        .map(|config_map| {
            let golden =
                config_map["metadata"]["annotations"]["toolhive.stacklok.dev/content-checksum"].as_str();
            let (data, labels) = (map(&config_map["data"]), map(&config_map["metadata"]["labels"]));
            (golden.unwrap().to_owned(), skep_config::checksum(&data, &labels, &BTreeMap::new()))
        })
        .collect()
}

#[tokio::test]
#[ignore = "reads the folder that SKEP_COMPAT names"]
async fn what_toolhive_made_is_taken_over_and_no_pod_rolls() {
    for folder in golden::folders() {
        let fixture = Fixture::with(golden::settings()).await.stopped().await;
        let names = golden::create_inputs(&fixture, &folder).await;
        let mut children = golden::children(&folder, fixture.test.name(), &names);
        let checksums = checksums(&children);
        for child in &mut children {
            let owner = &child["metadata"]["ownerReferences"][0];
            let kind = golden::kind_of(owner).unwrap();
            let owner = fixture.object(kind, owner["name"].as_str().unwrap()).await.unwrap();
            *child = as_written(child.take(), &owner.metadata.uid.unwrap(), &checksums);
            golden::create_as(&fixture, "thv-operator", child).await;
        }
        let fixture = fixture.restart().await;
        for (kind, name) in &names {
            fixture.settle_any(*kind, name).await;
        }
        for child in &children {
            let (kind, name) = (child["kind"].as_str().unwrap(), child["metadata"]["name"].as_str().unwrap());
            let live = golden::api(&fixture, child).get(name).await.unwrap();
            let what = format!("{}: {kind} {name}", folder.display());
            if matches!(kind, "Deployment" | "StatefulSet") {
                let wanted = golden::without_duplicate_variables(child.clone());
                let template = |object: &Value| object["spec"]["template"].clone();
                similar_asserts::assert_eq!(template(&live.data), template(&wanted), "{what} has other pods");
                let changes = if wanted == *child { 0 } else { 1 };
                assert_eq!(live.metadata.generation, Some(1 + changes), "{what} was changed");
            }
            let managers =
                live.metadata.managed_fields.iter().flatten().filter_map(|entry| entry.manager.as_deref());
            let owner = &child["metadata"]["ownerReferences"][0]["kind"];
            let manager = format!("skep-{}", owner.as_str().unwrap().to_lowercase());
            assert_eq!(managers.collect::<Vec<_>>(), [manager], "{what} has one owner");
        }
        later_removals_work(&fixture, &names).await;
        fixture.operator.stop().await;
    }
}

/// What ToolHive wrote and is not wanted any more goes, as if we had written it.
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
