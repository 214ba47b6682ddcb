//! Nothing moves when nothing changes, for generated specs.

mod fields;
mod pod_templates;

use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use proptest::{
    strategy::{BoxedStrategy, Strategy, ValueTree},
    test_runner::TestRunner,
};
use serde_json::{Value, json};
use skep_api::kinds::{
    MCPAuthzConfig, MCPExternalAuthConfig, MCPGroup, MCPOIDCConfig, MCPRemoteProxy, MCPServer,
    MCPTelemetryConfig, MCPToolConfig, MCPWebhookConfig,
};
use skep_converge::Kind;
use skep_operator::watched::{
    ConfigMaps, Deployments, RemoteProxies, RoleBindings, Roles, Servers, ServiceAccounts, Services,
};
use skep_testkit::fixtures::{TestGroup, TestOidcConfig, TestToolConfig};
use skep_world::Watched;

use crate::fixture::Fixture;
use fields::{
    Fields, of_remote_proxies, of_servers, remote_proxies_must_have, servers_must_have, shared, spec,
};

/// How many specs of each kind are tried in one run.
const SERVERS: usize = 200;
const REMOTE_PROXIES: usize = 120;

/// The kinds whose objects are generated.
const KINDS: [Kind; 2] = [Servers::KIND, RemoteProxies::KIND];

/// What is written for them.
const CHILDREN: [Kind; 6] = [
    Deployments::KIND,
    Services::KIND,
    ServiceAccounts::KIND,
    Roles::KIND,
    RoleBindings::KIND,
    ConfigMaps::KIND,
];

/// The fields that every object of the kind has, and those that it may have.
fn fields_of(kind: Kind) -> (Fields, Fields) {
    let (required, own) = match kind.kind {
        "MCPServer" => (servers_must_have(), of_servers()),
        _ => (remote_proxies_must_have(), of_remote_proxies()),
    };
    (required, shared().into_iter().chain(own).collect())
}

async fn references(fixture: &Fixture) {
    let test = &fixture.test;
    test.create_object(&MCPGroup::test("group")).await;
    test.create_object(&MCPOIDCConfig::test("oidc")).await;
    test.create_object(&MCPToolConfig::test("tools").offering("fetch")).await;
    test.create_object(&object::<MCPExternalAuthConfig>("exchange", json!({
        "type": "tokenExchange", "tokenExchange": {"tokenUrl": "https://sts.example/token", "audience": "b"},
    })))
    .await;
    test.create_object(&object::<MCPAuthzConfig>("authz", json!({
        "type": "cedarv1", "config": {"policies": ["permit(principal, action, resource);"], "entities_json": "[]"},
    })))
    .await;
    test.create_object(&object::<MCPTelemetryConfig>(
        "otel",
        json!({
            "openTelemetry": {
                "enabled": true, "endpoint": "https://otel.example:4318", "tracing": {"enabled": true},
                "sensitiveHeaders": [{"name": "x-key", "secretKeyRef": {"name": "s", "key": "k"}}],
            },
        }),
    ))
    .await;
    test.create_object(&object::<MCPWebhookConfig>("hooks", json!({
        "validating": [{"name": "v", "url": "https://hook.example", "hmacSecretRef": {"name": "s", "key": "k"}}],
    })))
    .await;
    let policies = json!({"version": "1.0", "type": "cedarv1", "cedar": {"policies": ["permit(principal, action, resource);"], "entities_json": "[]"}});
    let config_map = json!({"metadata": {"name": "policies"}, "data": {"authz.json": policies.to_string()}});
    test.create_object(&serde_json::from_value::<ConfigMap>(config_map).unwrap()).await;
    let secret = json!({"metadata": {"name": "s"}, "stringData": {"k": "v"}});
    test.create_object(&serde_json::from_value::<Secret>(secret).unwrap()).await;
}

fn object<K: serde::de::DeserializeOwned + kube::Resource<DynamicType = ()>>(name: &str, spec: Value) -> K {
    let (api_version, kind) = (K::api_version(&()), K::kind(&()));
    let object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "spec": spec});
    serde_json::from_value(object).unwrap()
}

/// Creates so many objects of a kind, and returns their names.
async fn create<K>(fixture: &Fixture, kind: Kind, count: usize) -> Vec<(Kind, String)>
where
    K: kube::Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>,
    K: Clone + std::fmt::Debug + serde::de::DeserializeOwned + serde::Serialize,
{
    let (required, optional) = fields_of(kind);
    let strategy: BoxedStrategy<Value> = spec(required, optional);
    let mut runner = TestRunner::default();
    let mut names = Vec::new();
    for number in 0..count {
        let name = format!("{}-{number}", kind.kind.to_lowercase());
        let spec = strategy.new_tree(&mut runner).unwrap().current();
        fixture.test.create_object(&object::<K>(&name, spec)).await;
        names.push((kind, name));
    }
    names
}

#[tokio::test]
async fn a_generated_object_that_is_settled_is_never_written_again() {
    let fixture = Fixture::new().await;
    references(&fixture).await;
    let mut names = create::<MCPServer>(&fixture, Servers::KIND, SERVERS).await;
    names.extend(create::<MCPRemoteProxy>(&fixture, RemoteProxies::KIND, REMOTE_PROXIES).await);
    let reported_on = async {
        for kind in KINDS {
            while list(&fixture, kind)
                .await
                .iter()
                .any(|object| object["status"]["observedGeneration"].is_null())
            {
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(180), reported_on).await.expect("all are reported on");
    let (kind, name) = &names[0];
    fixture.settle_any(*kind, name).await;
    most_can_run(&fixture).await;

    let fixture = fixture.restart().await;
    let recording = fixture.record();
    fixture.settle_any(*kind, name).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let mut rewritten = Vec::new();
    for request in recording.requests().await.iter().filter(|request| request.is_write()) {
        let kind = CHILDREN.into_iter().find(|kind| kind.plural == request.resource);
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

/// Where what was sent is not what is there.
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
        (sent, live) => vec![format!("{path}: {sent} was sent, {live} is there")],
    }
}

/// All objects of a kind.
async fn list(fixture: &Fixture, kind: Kind) -> Vec<Value> {
    let request = http::Request::get(kind.path(Some(fixture.test.name()))).body(Vec::new()).unwrap();
    let mut list: Value = fixture.test.client().request(request).await.unwrap();
    serde_json::from_value(list["items"].take()).unwrap()
}

async fn most_can_run(fixture: &Fixture) {
    for kind in KINDS {
        let objects = list(fixture, kind).await;
        let failed = objects.iter().filter(|object| object["status"]["phase"] == "Failed");
        let failed: Vec<&str> = failed.filter_map(|object| object["status"]["message"].as_str()).collect();
        let refused: Vec<&&str> = failed.iter().filter(|message| message.contains("is invalid")).collect();
        assert!(refused.is_empty(), "children of {} are refused by the API server: {refused:#?}", kind.kind);
        assert!(failed.len() < objects.len() / 2, "most generated {} cannot run: {failed:#?}", kind.plural);
    }
}

#[test]
fn every_field_of_the_spec_is_generated() {
    let crds = skep_api::crd::crds().unwrap();
    for kind in KINDS {
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
