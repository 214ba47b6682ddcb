//! Deployments that another operator created: events report what happens to pods, and nothing about the takeover.

use crate::kinds::{RemoteProxies, Servers};
use k8s_openapi::api::apps::v1::Deployment;
use kube::api::{DeleteParams, PostParams};
use serde_json::{Value, json};
use skep_api::kinds::{MCPRemoteProxy, MCPServer};
use skep_testkit::fixtures::{TestRemoteProxy, TestServer};
use skep_world::Watched;

use crate::fixture::Fixture;

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
    let fixture = Fixture::new().await;
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
    let without_notes = |deployment: &mut Value| {
        deployment["spec"]["template"]["metadata"].as_object_mut().unwrap().remove("annotations");
    };
    let (managers, events) = managers_and_events(without_notes).await;
    assert_eq!(managers, ["skep-mcpserver", "skep-mcpremoteproxy"]);
    let note = "updated the proxy's Deployment: the Deployment differed from the desired state";
    let reported = ("ProxyUpdated".to_owned(), note.to_owned());
    assert_eq!(events, [reported.clone(), reported]);
}
