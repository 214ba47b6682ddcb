//! Deployments that another operator created: events report what happens to pods, and nothing about the takeover.

use crate::kinds::{AuthzConfigs, RemoteProxies, Servers};
use k8s_openapi::api::apps::v1::Deployment;
use kube::{
    api::{DeleteParams, PostParams},
    core::DynamicObject,
};
use serde_json::{Value, json};
use skep_api::kinds::{MCPOIDCConfig, MCPRemoteProxy, MCPServer};
use skep_operator::{resources::Deployments, settings::Settings};
use skep_testkit::fixtures::{TestOidcConfig, TestRemoteProxy, TestServer};
use skep_world::Watched;

use crate::{
    fixture::{Fixture, conditions},
    references::PERMIT,
};

/// Recreates the Deployment as another operator would, by a plain write.
async fn make_as_another(fixture: &Fixture, name: &str, change: impl FnOnce(&mut Value)) {
    let deployments = fixture.test.api::<Deployment>();
    let mut object = json!(deployments.get(name).await.unwrap());
    for field in ["uid", "resourceVersion", "creationTimestamp", "generation", "managedFields"] {
        object["metadata"].as_object_mut().unwrap().remove(field);
    }
    change(&mut object);
    deployments.delete(name, &DeleteParams::default()).await.unwrap();
    let params = PostParams { field_manager: Some("another".into()), ..PostParams::default() };
    deployments.create(&params, &serde_json::from_value(object).unwrap()).await.unwrap();
}

/// A server and a remote proxy whose Deployments another operator created, and their field managers once they are settled.
async fn managers_and_events(change: impl Fn(&mut Value)) -> (Vec<String>, Vec<(String, String)>) {
    let fixture = Fixture::with(Settings { takeover_rollouts: true, ..Settings::default() }).await;
    fixture.settled(&MCPServer::test("fetch")).await;
    fixture.test.create_object(&MCPRemoteProxy::test("elsewhere")).await;
    fixture.settle_any(RemoteProxies::kind(), "elsewhere").await;
    assert_eq!(fixture.events().await, [], "a first proxy is no news");
    let fixture = fixture.stopped().await;
    for name in ["fetch", "elsewhere"] {
        make_as_another(&fixture, name, &change).await;
    }
    let fixture = fixture.restart().await;
    let mut managers = Vec::new();
    for (kind, name) in [(Servers::kind(), "fetch"), (RemoteProxies::kind(), "elsewhere")] {
        fixture.settle_any(kind, name).await;
        let entries = fixture.deployment(name).await.metadata.managed_fields.unwrap_or_default();
        managers.extend(entries.into_iter().filter_map(|entry| entry.manager));
    }
    let events = fixture.events().await;
    fixture.operator.stop().await;
    (managers, events)
}

#[tokio::test]
async fn a_takeover_that_keeps_the_pods_publishes_no_event() {
    let (managers, events) = managers_and_events(|_| {}).await;
    assert_eq!(managers, ["skep-mcpserver", "skep-mcpremoteproxy"]);
    assert_eq!(events, []);
}

#[tokio::test]
async fn a_takeover_that_replaces_pods_is_reported_as_such() {
    let (managers, events) = managers_and_events(without_annotations).await;
    assert_eq!(managers, ["skep-mcpserver", "skep-mcpremoteproxy"]);
    let note = "updated the proxy's Deployment: the Deployment differed from the desired state";
    let reported = ("ProxyUpdated".to_owned(), note.to_owned());
    assert_eq!(events, [reported.clone(), reported]);
}

fn without_annotations(deployment: &mut Value) {
    deployment["spec"]["template"]["metadata"].as_object_mut().unwrap().remove("annotations");
}

/// A server whose pods another operator made, and which would have to be replaced.
async fn waiting() -> Fixture {
    let fixture = Fixture::new().await;
    fixture.settled(&MCPServer::test("fetch")).await;
    let fixture = fixture.stopped().await;
    make_as_another(&fixture, "fetch", without_annotations).await;
    let fixture = fixture.restart().await;
    let waits = |object: &DynamicObject| conditions(object).contains_key("RolloutPending");
    fixture.until_object(Servers::kind(), "fetch", "waiting", waits).await;
    let object = fixture.settle_any(Servers::kind(), "fetch").await;
    let expected = ("True".to_owned(), "WaitsForRollout".to_owned());
    assert_eq!(conditions(&object)["RolloutPending"], expected);
    assert_eq!(fixture.pod_annotations("fetch").await, Value::Null, "no pod is replaced");
    fixture
}

async fn until_replaced(fixture: Fixture) {
    let is_ours = |deployment: &Value| !deployment["spec"]["template"]["metadata"]["annotations"].is_null();
    fixture.until_any(Deployments::kind(), "fetch", "replaced", is_ours).await;
    let object = fixture.settle_any(Servers::kind(), "fetch").await;
    assert!(!conditions(&object).contains_key("RolloutPending"));
    fixture.operator.stop().await;
}

#[tokio::test]
async fn pods_of_another_operator_are_replaced_when_their_object_allows_it() {
    let fixture = waiting().await;
    let fixture = fixture.restart().await;
    let recording = fixture.record();
    fixture.settle("fetch").await;
    assert_eq!(
        recording.writes().await.iter().filter(|write| !write.contains("patch deployments")).count(),
        0
    );
    fixture.patch("fetch", json!({"metadata": {"annotations": {"skep.dev/allow-rollout": "true"}}})).await;
    until_replaced(fixture).await;
}

#[tokio::test]
async fn pods_of_another_operator_are_replaced_when_the_spec_changes_even_if_it_must_wait() {
    let fixture = waiting().await;
    let missing = json!({"spec": {"image": "registry.example/mcp:2", "oidcConfigRef": {"name": "late", "audience": "a"}}});
    fixture.patch("fetch", missing).await;
    let is_postponed = |object: &DynamicObject| {
        conditions(object).get("RolloutPending").is_some_and(|(_, reason)| reason == "SpecChanged")
    };
    fixture.until_object(Servers::kind(), "fetch", "postponed", is_postponed).await;
    assert_eq!(fixture.pod_annotations("fetch").await, Value::Null);
    fixture.test.create_object(&MCPOIDCConfig::test("late")).await;
    until_replaced(fixture).await;
}

/// A policy that was tightened must not wait for weeks.
#[tokio::test]
async fn pods_of_another_operator_are_replaced_when_a_configuration_changes() {
    let fixture = Fixture::new().await;
    let policy =
        |policies: Value| json!({"type": "cedarv1", "config": {"policies": policies, "entities_json": "[]"}});
    fixture.create(AuthzConfigs::kind(), "policies", policy(json!([PERMIT]))).await;
    let spec = json!({"image": "registry.example/mcp:1", "authzConfigRef": {"name": "policies"}});
    fixture.create(Servers::kind(), "fetch", spec).await;
    fixture.settle("fetch").await;
    let fixture = fixture.stopped().await;
    make_as_another(&fixture, "fetch", without_annotations).await;
    let fixture = fixture.restart().await;
    let waits = |object: &DynamicObject| conditions(object).contains_key("RolloutPending");
    fixture.until_object(Servers::kind(), "fetch", "waiting", waits).await;
    fixture.settle("fetch").await;
    let fixture = fixture.restart().await;
    fixture.settle("fetch").await;
    assert_eq!(fixture.pod_annotations("fetch").await, Value::Null, "no pod is replaced");
    let tightened = policy(json!([PERMIT, r#"forbid(principal, action, resource == Tool::"delete");"#]));
    fixture.patch_any(AuthzConfigs::kind(), "policies", json!({"spec": tightened})).await;
    until_replaced(fixture).await;
}

#[tokio::test]
async fn pods_of_another_operator_are_replaced_when_a_restart_is_requested() {
    let fixture = waiting().await;
    let request = json!({"mcpserver.toolhive.stacklok.dev/restarted-at": "2026-01-01T00:00:00Z"});
    fixture.patch("fetch", json!({"metadata": {"annotations": request}})).await;
    until_replaced(fixture).await;
}
