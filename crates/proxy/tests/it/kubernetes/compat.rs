//! The objects that ToolHive's proxy applied for the same inputs, read from the folder that `SKEP_COMPAT` names.

use std::{
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
};

use kube::{
    Api, ResourceExt,
    core::{ApiResource, DynamicObject, GroupVersionKind},
};
use regex::Regex;
use serde_json::{Value, json};
use skep_config::{annotations, env::MCPSERVER_GENERATION, objects::POD_PATCH_FLAG};
use skep_proxy::{Overrides, load};

use super::fixture::Fixture;

const APPLIED: &str = "applied-by-proxy.yaml";

fn folders() -> Vec<PathBuf> {
    let compat: PathBuf =
        env::var_os("SKEP_COMPAT").expect("SKEP_COMPAT names the folder of golden objects").into();
    let mut all = Vec::new();
    collect(&compat.join("golden"), &mut all);
    all.sort();
    assert!(all.len() > 10, "only {} folders", all.len());
    all
}

fn collect(folder: &Path, folders: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, folders);
        } else if path.ends_with(APPLIED) {
            folders.push(path.parent().unwrap().into());
        }
    }
}

fn documents(file: &Path, namespace: &str) -> Vec<Value> {
    let text = fs::read_to_string(file).unwrap();
    let text = Regex::new(r"\bNS\b").unwrap().replace_all(&text, namespace);
    let documents: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
    documents.into_iter().filter(Value::is_object).collect()
}

/// Runs each server of a folder as its proxy does, which the operator gave a Deployment and a RunConfig.
async fn run(fixture: &Fixture, folder: &Path) {
    let objects = documents(&folder.join("objects.yaml"), fixture.test.name());
    for deployment in objects.iter().filter(|object| object["kind"] == "Deployment") {
        let name = deployment["metadata"]["name"].as_str().unwrap();
        let config_map = objects.iter().find(|object| {
            object["kind"] == "ConfigMap" && object["metadata"]["name"] == format!("{name}-runconfig")
        });
        let template = &deployment["spec"]["template"];
        let arguments: Vec<&str> = template["spec"]["containers"][0]["args"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(Value::as_str)
            .collect();
        let [.., image] = arguments[..] else { panic!("{arguments:?}") };
        let flag = format!("{POD_PATCH_FLAG}=");
        let pod_patch = arguments.iter().find_map(|argument| argument.strip_prefix(&flag)).map(Into::into);
        let generation =
            template["metadata"]["annotations"][annotations::MCPSERVER_GENERATION].as_str().unwrap();
        let file = fixture.test.folder().join(format!("{}-{name}.json", fixture.test.name()));
        fs::write(&file, config_map.unwrap()["data"]["runconfig.json"].as_str().unwrap()).unwrap();
        let env = BTreeMap::from([(MCPSERVER_GENERATION.to_owned(), generation.to_owned())]);
        let overrides = Overrides { image: image.into(), pod_patch, debug: false, env };
        fixture.run(&load(&[&file], &overrides).unwrap()).await;
    }
}

/// Removes what the proxy does not determine: identities, times, what the cluster assigns, and the StatefulSet's owner.
fn comparable(mut object: Value) -> Value {
    let kind = object["kind"].clone();
    let metadata = object["metadata"].as_object_mut().unwrap();
    for key in ["uid", "resourceVersion", "creationTimestamp", "managedFields", "generation"] {
        metadata.remove(key);
    }
    if kind == "StatefulSet" {
        metadata.remove("ownerReferences");
        // Ours is Parallel: see docs/compatibility.md.
        object["spec"].as_object_mut().unwrap().remove("podManagementPolicy");
    }
    let metadata = object["metadata"].as_object_mut().unwrap();
    for owner in metadata.get_mut("ownerReferences").and_then(Value::as_array_mut).into_iter().flatten() {
        owner["uid"] = json!("UID");
    }
    object.as_object_mut().unwrap().remove("status");
    if object["spec"]["clusterIP"] != "None" {
        let spec = object["spec"].as_object_mut().unwrap();
        spec.remove("clusterIP");
        spec.remove("clusterIPs");
    }
    object.sort_all_objects();
    object
}

async fn live(fixture: &Fixture, object: &Value) -> Option<Value> {
    let (api_version, kind) = (object["apiVersion"].as_str().unwrap(), object["kind"].as_str().unwrap());
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    let api: Api<DynamicObject> = Api::namespaced_with(fixture.test.client(), fixture.test.name(), &resource);
    let live = api.get_opt(object["metadata"]["name"].as_str().unwrap()).await.unwrap();
    live.map(|object| serde_json::to_value(object).unwrap())
}

#[tokio::test]
#[ignore = "reads the folder that SKEP_COMPAT names"]
async fn the_objects_of_every_golden_server_equal_toolhive_s() {
    for folder in folders() {
        let fixture = Fixture::new().await;
        run(&fixture, &folder).await;
        let theirs = documents(&folder.join(APPLIED), fixture.test.name());
        for theirs in &theirs {
            let ours = live(&fixture, theirs).await.unwrap_or_default();
            let text = |object: Value| serde_json::to_string_pretty(&object).unwrap();
            let what = format!("{}: {} {}", folder.display(), theirs["kind"], theirs["metadata"]["name"]);
            assert!(ours.is_object(), "{what} is missing");
            similar_asserts::assert_eq!(theirs: text(comparable(theirs.clone())), ours: text(comparable(ours)), "{what}");
        }
        let services = fixture.test.api::<k8s_openapi::api::core::v1::Service>();
        let names: Vec<String> =
            services.list(&Default::default()).await.unwrap().iter().map(ResourceExt::name_any).collect();
        let expected = theirs.iter().filter(|object| object["kind"] == "Service").count();
        assert_eq!(names.len(), expected, "{}: {names:?}", folder.display());
    }
}
