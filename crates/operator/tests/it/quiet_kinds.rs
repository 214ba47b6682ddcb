//! Nothing is written when nothing changes, for every kind: every specimen of the API, and variants of it.

use skep_operator::resources::StatefulSets;
use std::{collections::BTreeMap, fs};

use k8s_openapi::api::core::v1::Secret;
use proptest::{prelude::*, sample::Index, strategy::ValueTree};
use serde_json::{Map, Value, json};
use skep_converge::Kind;
use skep_testkit::repository;
use skep_world::Watched;

use crate::{
    fixture::{Fixture, children},
    generated::runner,
    kinds::all_kinds,
};

/// Every kind but those that run pods for a server, whose specs are generated: see `generated` and `generated_virtual`.
fn kinds() -> Vec<Kind> {
    let is_generated = |kind: &Kind| ["MCPRemoteProxy", "MCPServer", "VirtualMCPServer"].contains(&kind.kind);
    all_kinds().into_iter().filter(|kind| !is_generated(kind)).collect()
}

/// Variants of each specimen that are tried. The API server rejects some of them.
const VARIANTS: usize = 20;

/// The objects with which the API itself is tested: together they have every field.
fn specimens(kind: Kind) -> Vec<Value> {
    let folder = repository("crates/api/tests/it/specimens").join(kind.kind);
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.iter().map(|file| serde_saphyr::from_str(&fs::read_to_string(file).unwrap()).unwrap()).collect()
}

/// The object without one of the fields of its spec, at any depth.
fn without_one(object: &Value, choice: Index) -> Value {
    let mut places = Vec::new();
    fields(&object["spec"], "/spec", &mut places);
    let mut variant = object.clone();
    if !places.is_empty() {
        let (parent, field) = choice.get(&places);
        if let Some(parent) = variant.pointer_mut(parent).and_then(Value::as_object_mut) {
            parent.remove(field);
        }
    }
    variant
}

fn fields(value: &Value, path: &str, places: &mut Vec<(String, String)>) {
    let escaped = |name: &str| name.replace('~', "~0").replace('/', "~1");
    match value {
        Value::Object(map) => map.iter().for_each(|(name, value)| {
            places.push((path.to_owned(), name.clone()));
            fields(value, &format!("{path}/{}", escaped(name)), places);
        }),
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(i, item)| fields(item, &format!("{path}/{i}"), places));
        }
        _ => {}
    }
}

async fn stored(fixture: &Fixture, kind: Kind, name: &str, object: &Value) -> bool {
    let mut object = object.clone();
    object["metadata"] = json!({"name": name});
    let request = http::Request::post(kind.path(Some(fixture.test.name())));
    let request = request.body(object.to_string().into_bytes()).unwrap();
    match fixture.test.client().request::<Value>(request).await {
        Ok(_) => true,
        Err(kube::Error::Api(status)) if status.code == 422 => false,
        Err(error) => panic!("{} {name}: {error}", kind.kind),
    }
}

#[tokio::test]
async fn every_specimen_and_its_variants_are_settled_once_and_never_written_again() {
    let fixture = Fixture::new().await;
    create_secrets(&fixture).await;
    let mut runner = runner();
    let mut names: BTreeMap<Kind, Vec<String>> = BTreeMap::new();
    for kind in kinds() {
        for (number, specimen) in specimens(kind).into_iter().enumerate() {
            for variant in 0..=VARIANTS {
                let choice = any::<Index>().new_tree(&mut runner).unwrap().current();
                let object = if variant == 0 { specimen.clone() } else { without_one(&specimen, choice) };
                let name = format!("o-{number}-{variant}");
                if stored(&fixture, kind, &name, &object).await {
                    names.entry(kind).or_default().push(name);
                }
            }
        }
    }
    assert!(names.values().map(Vec::len).sum::<usize>() >= 200, "too few: {names:?}");
    fixture.until_idle().await;
    for (kind, names) in &names {
        for name in names {
            let object = fixture.object(*kind, name).await.unwrap();
            assert_eq!(object.data["status"]["observedGeneration"], 1, "{} {name}", kind.kind);
        }
    }
    let before = versions(&fixture).await;

    assert_no_secret_is_copied(&fixture).await;

    let fixture = fixture.restart().await;
    let recording = fixture.record();
    fixture.until_idle().await;
    assert_eq!(recording.writes().await, [] as [&str; 0]);
    assert_eq!(versions(&fixture).await, before);
    fixture.operator.stop().await;
}

const SECRET: &str = "value-of-a-secret";

/// No value of a Secret is in an object that the operator writes, or in an event.
async fn assert_no_secret_is_copied(fixture: &Fixture) {
    let encoded = "dmFsdWUtb2YtYS1zZWNyZXQ";
    for kind in all_kinds().into_iter().chain(children()).chain([StatefulSets::kind()]) {
        for object in fixture.objects(kind).await {
            let text = object.to_string();
            assert!(!text.contains(SECRET) && !text.contains(encoded), "{text}");
        }
    }
    let events = serde_json::to_string(&fixture.published().await).unwrap();
    assert!(!events.contains(SECRET) && !events.contains(encoded), "{events}");
}

/// The Secrets without which some specimens would have no children.
async fn create_secrets(fixture: &Fixture) {
    for (name, key) in [("hugging-face", "token"), ("postgres", "pgpass")] {
        let secret = json!({"metadata": {"name": name}, "stringData": {key: SECRET}});
        fixture.test.create_object(&serde_json::from_value::<Secret>(secret).unwrap()).await;
    }
}

async fn versions(fixture: &Fixture) -> Map<String, Value> {
    let mut versions = Map::new();
    for kind in kinds().into_iter().chain(children()).chain([StatefulSets::kind()]) {
        let request = http::Request::get(kind.path(Some(fixture.test.name()))).body(Vec::new()).unwrap();
        let list: Value = fixture.test.client().request(request).await.unwrap();
        for object in list["items"].as_array().unwrap() {
            let metadata = &object["metadata"];
            versions
                .insert(format!("{} {}", kind.kind, metadata["name"]), metadata["resourceVersion"].clone());
        }
    }
    versions
}
