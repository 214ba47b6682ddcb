//! The operator never overwrites what others own.

use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use skep_api::kinds::MCPServer;
use skep_testkit::fixtures::TestServer;

use crate::fixture::Fixture;

#[tokio::test]
async fn authz_config_that_another_controller_applies_is_never_cleared() {
    let fixture = Fixture::new().await;
    fixture.settled(&MCPServer::test("fetch")).await;
    let authz = json!({
        "apiVersion": "toolhive.stacklok.dev/v1beta1", "kind": "MCPServer",
        "spec": {"authzConfig": {"type": "inline", "inline": {"policies": ["permit(principal, action, resource);"]}}},
    });
    let api = fixture.test.api::<MCPServer>();
    api.patch("fetch", &PatchParams::apply("another-controller"), &Patch::Apply(authz)).await.unwrap();
    fixture.settle("fetch").await;
    fixture.patch("fetch", json!({"spec": {"image": "registry.example/mcp:2"}})).await;
    let server = fixture.settle("fetch").await;
    assert!(server.spec.authz_config.is_some());
    fixture.operator.stop().await;
}

#[tokio::test]
async fn the_custom_resource_is_only_ever_patched_with_what_changes() {
    let fixture = Fixture::new().await;
    let recording = fixture.record();
    fixture.settled(&MCPServer::test("fetch")).await;
    fixture.patch("fetch", json!({"spec": {"image": "registry.example/mcp:2"}})).await;
    fixture.settle("fetch").await;
    let requests = recording.requests().await;
    let on_servers: Vec<_> = requests.iter().filter(|r| r.is_write() && r.resource == "mcpservers").collect();
    assert!(on_servers.iter().all(|request| request.verb == "patch"), "no full PUT: {on_servers:#?}");
    for request in &on_servers {
        let body = request.body.clone().unwrap();
        match request.subresource.as_str() {
            "status" => {
                assert_eq!(body["spec"], Value::Null);
                assert_eq!(body["metadata"]["resourceVersion"], Value::Null, "status has no precondition");
            }
            _ => {
                let keys: Vec<&String> = body["metadata"].as_object().unwrap().keys().collect();
                assert_eq!(keys, ["finalizers", "resourceVersion"], "what changes, and the precondition");
                assert_eq!(body.as_object().unwrap().len(), 1);
            }
        }
    }
    fixture.operator.stop().await;
}

#[tokio::test]
async fn replicas_are_left_to_an_autoscaler_when_the_spec_has_none() {
    let fixture = Fixture::new().await;
    fixture.settled(&MCPServer::test("fetch").streamable_http()).await;
    let path = format!("/apis/apps/v1/namespaces/{}/deployments/fetch/scale", fixture.test.name());
    let request = http::Request::patch(path).header("content-type", "application/merge-patch+json");
    let request = request.body(serde_json::to_vec(&json!({"spec": {"replicas": 5}})).unwrap()).unwrap();
    fixture.test.client().request::<Value>(request).await.unwrap();
    fixture.patch("fetch", json!({"spec": {"image": "registry.example/mcp:2"}})).await;
    fixture.settle("fetch").await;
    assert_eq!(fixture.deployment("fetch").await.spec.unwrap().replicas, Some(5));
    fixture.operator.stop().await;
}
