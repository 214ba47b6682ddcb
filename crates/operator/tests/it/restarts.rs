//! Restarts that users request by annotations.

use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};
use skep_api::kinds::MCPServer;
use skep_operator::resources::Deployments;
use skep_testkit::fixtures::TestServer;
use skep_world::Watched;

use crate::{fixture::Fixture, kinds::Servers};

const REQUESTED: &str = "2026-02-03T04:05:06Z";

fn request(strategy: &str) -> Value {
    json!({"metadata": {"annotations": {
        "mcpserver.toolhive.stacklok.dev/restarted-at": REQUESTED,
        "mcpserver.toolhive.stacklok.dev/restart-strategy": strategy,
    }}})
}

fn is_processed(server: &Value) -> bool {
    server["metadata"]["annotations"]["mcpserver.toolhive.stacklok.dev/last-processed-restart"] == REQUESTED
}

/// A server that runs, and whose new spec cannot be applied.
async fn blocked() -> Fixture {
    let fixture = Fixture::new().await;
    fixture.settled(&MCPServer::test("fetch")).await;
    fixture.test.kubelet().pod_of("fetch", "fetch-1").await;
    fixture.patch("fetch", json!({"spec": {"oidcConfigRef": {"name": "missing", "audience": "a"}}})).await;
    fixture.settle("fetch").await;
    fixture
}

#[tokio::test]
async fn a_rolling_restart_is_processed_while_the_spec_cannot_be_applied() {
    let fixture = blocked().await;
    let before = fixture.pod_annotations("fetch").await;
    fixture.patch("fetch", request("rolling")).await;
    fixture.until_any(Servers::kind(), "fetch", "processed", is_processed).await;
    fixture.until_idle().await;
    let mut expected = before.clone();
    expected["mcpserver.toolhive.stacklok.dev/restarted-at"] = json!(REQUESTED);
    assert_eq!(fixture.pod_annotations("fetch").await, expected, "nothing else changes");
    let deployment = fixture.object(Deployments::kind(), "fetch").await.unwrap();
    assert_eq!(deployment.metadata.generation, Some(2), "once");
    fixture.operator.stop().await;
}

#[tokio::test]
async fn an_immediate_restart_is_processed_while_the_spec_cannot_be_applied() {
    let fixture = blocked().await;
    fixture.patch("fetch", request("immediate")).await;
    fixture.until_any(Servers::kind(), "fetch", "processed", is_processed).await;
    fixture.until_idle().await;
    let pod = fixture.test.api::<Pod>().get_opt("fetch-1").await.unwrap();
    assert!(pod.is_none_or(|pod| pod.metadata.deletion_timestamp.is_some()));
    fixture.operator.stop().await;
}

#[tokio::test]
async fn a_restart_is_marked_with_a_precondition_before_pods_are_deleted() {
    let fixture = Fixture::new().await;
    fixture.settled(&MCPServer::test("fetch")).await;
    fixture.test.kubelet().pod_of("fetch", "fetch-1").await;
    fixture.until_idle().await;
    let recording = fixture.record();
    fixture.patch("fetch", request("immediate")).await;
    fixture.until_any(Servers::kind(), "fetch", "processed", is_processed).await;
    fixture.until_idle().await;
    let requests = recording.requests().await;
    let marks = requests.iter().position(|request| {
        request.resource == "mcpservers"
            && request.subresource.is_empty()
            && request.verb == "patch"
            && request.code == 200
    });
    let deletes = requests.iter().position(|request| request.verb == "delete" && request.resource == "pods");
    assert!(marks.is_some() && marks < deletes, "{marks:?} {deletes:?}");
    let mark = requests[marks.unwrap()].body.as_ref().unwrap();
    assert!(mark["metadata"]["resourceVersion"].is_string(), "{mark:#}");
    let delete = requests[deletes.unwrap()].body.as_ref().unwrap();
    assert!(delete["preconditions"]["uid"].is_string(), "{delete:#}");
    fixture.operator.stop().await;
}
