//! The charts on a real API server. `hack/charts` checks that the snapshots are what the chart `skep` renders for some
//! values; these tests use them.

mod accepted;
mod installed;
mod rights;
mod started;
mod values;

use std::{fs, path::PathBuf};

use kube::{
    Api, Client,
    api::{ApiResource, Patch, PatchParams},
    core::{DynamicObject, GroupVersionKind},
};
use serde_json::Value;
use skep_testkit::repository;

/// All snapshots.
/// The snapshot that has the console, too.
const CONSOLE: &str = "console";
const SNAPSHOTS: [&str; 5] = ["autoscaled", "default", "everything", "namespaced", "numbers"];

/// A file of a chart.
fn file(path: &str) -> PathBuf {
    repository("charts").join(path)
}

fn text(path: &str) -> String {
    fs::read_to_string(file(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The objects of a snapshot, with other namespaces.
fn objects(snapshot: &str, namespaces: &[(&str, &str)]) -> Vec<Value> {
    let mut text = text(&format!("skep/tests/snapshots/{snapshot}.yaml"));
    for (named, meant) in namespaces {
        text = text.replace(named, meant);
    }
    let objects: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
    assert!(!objects.is_empty(), "{snapshot} has no objects");
    objects
}

/// The only object of a kind.
fn only<'a>(objects: &'a [Value], kind: &str) -> &'a Value {
    let mut matching = objects.iter().filter(|object| object["kind"] == kind);
    let first = matching.next().unwrap_or_else(|| panic!("no {kind}"));
    assert!(matching.next().is_none(), "more than one {kind}");
    first
}

/// Applies an object. An unknown field is an error.
async fn apply(client: &Client, object: &Value, how: PatchParams) -> DynamicObject {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (api_version, kind) = (text(&object["apiVersion"]), text(&object["kind"]));
    let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, &kind));
    let api: Api<DynamicObject> = match object["metadata"]["namespace"].as_str() {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    let name = text(&object["metadata"]["name"]);
    let applied = api.patch(&name, &how.validation_strict(), &Patch::Apply(object)).await;
    applied.unwrap_or_else(|error| panic!("{kind} {name}: {error}"))
}
