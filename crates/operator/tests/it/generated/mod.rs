//! Nothing is written when nothing changes, for generated specs.

mod fields;
mod pod_templates;

use crate::kinds::{RemoteProxies, Servers};
use std::hash::{BuildHasher, RandomState};

use proptest::{
    strategy::{BoxedStrategy, Strategy, ValueTree},
    test_runner::{Config, RngAlgorithm, TestRng, TestRunner},
};
use serde_json::{Value, json};
use skep_converge::Kind;
use skep_world::Watched;

use crate::{
    fixture::{Fixture, children},
    references::create_references,
};
use fields::{
    Fields, of_remote_proxies, of_servers, remote_proxies_must_have, servers_must_have, shared, spec,
};

/// A runner whose seed is printed: with it in SKEP_SEED, a failed test generates the same again.
pub(crate) fn runner() -> TestRunner {
    let given = std::env::var("SKEP_SEED").ok().map(|seed| seed.parse().expect("SKEP_SEED is a number"));
    let seed: u64 = given.unwrap_or_else(|| RandomState::new().hash_one("seed"));
    println!("SKEP_SEED={seed}");
    let bytes: Vec<u8> = seed.to_le_bytes().repeat(4);
    TestRunner::new_with_rng(Config::default(), TestRng::from_seed(RngAlgorithm::ChaCha, &bytes))
}

/// How many specs of each kind are tried in one run.
const SERVERS: usize = 200;
const REMOTE_PROXIES: usize = 120;

/// The kinds whose objects are generated.
fn kinds() -> [Kind; 2] {
    [Servers::kind(), RemoteProxies::kind()]
}

/// The fields that every object of the kind has, and those that it may have.
fn fields_of(kind: Kind) -> (Fields, Fields) {
    let (required, own) = match kind.kind {
        "MCPServer" => (servers_must_have(), of_servers()),
        _ => (remote_proxies_must_have(), of_remote_proxies()),
    };
    (required, shared().into_iter().chain(own).collect())
}

/// Creates so many objects of a kind.
async fn create(fixture: &Fixture, kind: Kind, count: usize) {
    let (required, optional) = fields_of(kind);
    let strategy: BoxedStrategy<Value> = spec(required, optional);
    let mut runner = runner();
    for number in 0..count {
        let metadata = json!({"name": format!("{}-{number}", kind.kind.to_lowercase())});
        let spec = strategy.new_tree(&mut runner).unwrap().current();
        let object =
            json!({"apiVersion": kind.api_version(), "kind": kind.kind, "metadata": metadata, "spec": spec});
        fixture.create_any(kind, &object).await;
    }
}

#[tokio::test]
async fn a_generated_object_that_is_settled_is_never_written_again() {
    let fixture = Fixture::new().await;
    create_references(&fixture).await;
    tokio::join!(
        create(&fixture, Servers::kind(), SERVERS),
        create(&fixture, RemoteProxies::kind(), REMOTE_PROXIES),
    );
    fixture.until_idle().await;
    for kind in kinds() {
        let objects = list(&fixture, kind).await;
        assert!(objects.iter().all(|object| object["status"]["observedGeneration"] == 1), "{objects:#?}");
    }
    most_can_run(&fixture).await;

    let fixture = fixture.restart().await;
    let recording = fixture.record();
    fixture.until_idle().await;
    let mut rewritten = Vec::new();
    for request in recording.requests().await.iter().filter(|request| request.is_write()) {
        let kind = children().into_iter().find(|kind| kind.plural == request.resource);
        let live = match kind {
            Some(kind) => json!(fixture.object(kind, &request.name).await),
            None => Value::Null,
        };
        let sent = request.body.clone().unwrap_or_default();
        rewritten.push(format!("{request}: {:#?}", unlike(&sent, &live, "")));
    }
    assert!(rewritten.is_empty(), "{rewritten:#?}");
    fixture.operator.stop().await;
}

/// Where the live object differs from what was sent.
fn unlike(sent: &Value, live: &Value, path: &str) -> Vec<String> {
    match (sent, live) {
        (Value::Object(sent), Value::Object(live)) => {
            let of = |key: &String| live.get(key).unwrap_or(&Value::Null);
            sent.iter().flat_map(|(key, sent)| unlike(sent, of(key), &format!("{path}/{key}"))).collect()
        }
        (Value::Array(sent), Value::Array(live)) if sent.len() == live.len() => {
            let pairs = sent.iter().zip(live).enumerate();
            pairs.flat_map(|(i, (sent, live))| unlike(sent, live, &format!("{path}/{i}"))).collect()
        }
        (sent, live) if sent == live => Vec::new(),
        (sent, live) => vec![format!("{path}: {sent} was sent, {live} is stored")],
    }
}

/// All objects of a kind.
async fn list(fixture: &Fixture, kind: Kind) -> Vec<Value> {
    let request = http::Request::get(kind.path(Some(fixture.test.name()))).body(Vec::new()).unwrap();
    let mut list: Value = fixture.test.client().request(request).await.unwrap();
    serde_json::from_value(list["items"].take()).unwrap()
}

async fn most_can_run(fixture: &Fixture) {
    for kind in kinds() {
        let objects = list(fixture, kind).await;
        let failed = objects.iter().filter(|object| object["status"]["phase"] == "Failed");
        let failed: Vec<&str> = failed.filter_map(|object| object["status"]["message"].as_str()).collect();
        let rejected: Vec<&&str> = failed.iter().filter(|message| message.contains("is invalid")).collect();
        assert!(
            rejected.is_empty(),
            "children of {} are rejected by the API server: {rejected:#?}",
            kind.kind
        );
        assert!(failed.len() < objects.len() / 2, "most generated {} cannot run: {failed:#?}", kind.plural);
    }
}

#[test]
fn every_field_of_the_spec_is_generated() {
    let crds = skep_api::crd::crds().unwrap();
    for kind in kinds() {
        let crd = crds.iter().find(|crd| crd.spec.names.kind == kind.kind).unwrap();
        let schema = serde_json::to_value(&crd.spec.versions[0].schema).unwrap();
        let properties = schema.pointer("/openAPIV3Schema/properties/spec/properties").unwrap();
        let (required, optional) = fields_of(kind);
        let generated: Vec<&str> = required.into_iter().chain(optional).map(|(name, _)| name).collect();
        let properties = properties.as_object().unwrap();
        let missing: Vec<&String> =
            properties.keys().filter(|name| !generated.contains(&name.as_str())).collect();
        assert!(missing.is_empty(), "{}: add these to generated/fields.rs: {missing:?}", kind.kind);
    }
}
