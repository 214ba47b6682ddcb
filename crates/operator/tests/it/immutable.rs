//! Fields that Kubernetes does not allow to change.

use kube::api::{DeleteParams, PostParams};
use serde_json::{Value, json};
use skep_api::kinds::MCPServer;
use skep_converge::Kind;
use skep_operator::resources::{ConfigMaps, Deployments, RoleBindings};
use skep_testkit::fixtures::TestServer;
use skep_world::Watched;

use crate::{
    fixture::{Fixture, conditions},
    kinds::Servers,
};

/// Recreates a child with another value of a field, as an administrator might who edits and restores a manifest.
async fn recreate(
    fixture: &Fixture,
    kind: Kind,
    name: &str,
    change: impl FnOnce(&mut Value),
) -> Option<String> {
    let api = fixture.api(kind);
    let mut object = json!(api.get(name).await.unwrap());
    for field in ["uid", "resourceVersion", "creationTimestamp", "generation", "managedFields"] {
        object["metadata"].as_object_mut().unwrap().remove(field);
    }
    object.as_object_mut().unwrap().remove("status");
    change(&mut object);
    api.delete(name, &DeleteParams::default()).await.unwrap();
    let created = api.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await;
    created.unwrap().metadata.uid
}

#[tokio::test]
async fn a_child_that_cannot_be_changed_is_created_anew() {
    let fixture = Fixture::new().await;
    fixture.settled(&MCPServer::test("fetch")).await;
    let desired = async |kind, name: &str, field: &str| {
        fixture.object(kind, name).await.map(|object| object.data[field].clone())
    };
    let role = desired(RoleBindings::kind(), "fetch-proxy-runner", "roleRef").await;
    let data = desired(ConfigMaps::kind(), "fetch-runconfig", "data").await;
    let fixture = fixture.stopped().await;
    recreate(&fixture, RoleBindings::kind(), "fetch-proxy-runner", |binding| {
        binding["roleRef"]["name"] = json!("cluster-admin");
    })
    .await;
    let frozen = json!({"immutable": true, "data": {"runconfig.json": "{}"}});
    fixture.patch_any(ConfigMaps::kind(), "fetch-runconfig", frozen).await;

    let fixture = fixture.restart().await;
    let server = fixture.settle("fetch").await;
    assert_eq!(server.status.unwrap().phase.unwrap().as_str(), "Pending");
    let desired = async |kind, name: &str, field: &str| {
        fixture.object(kind, name).await.map(|object| object.data[field].clone())
    };
    assert_eq!(desired(RoleBindings::kind(), "fetch-proxy-runner", "roleRef").await, role);
    assert_eq!(desired(ConfigMaps::kind(), "fetch-runconfig", "data").await, data);
    fixture.operator.stop().await;
}

#[tokio::test]
async fn a_workload_that_cannot_be_changed_is_reported_and_left_to_people() {
    let fixture = Fixture::new().await;
    fixture.settled(&MCPServer::test("fetch")).await;
    let fixture = fixture.stopped().await;
    let uid = recreate(&fixture, Deployments::kind(), "fetch", |deployment| {
        deployment["spec"]["selector"]["matchLabels"]["extra"] = json!("yes");
        deployment["spec"]["template"]["metadata"]["labels"]["extra"] = json!("yes");
    })
    .await;
    let fixture = fixture.restart().await;
    let is_failed = |object: &kube::core::DynamicObject| object.data["status"]["phase"] == "Failed";
    fixture.until_object(Servers::kind(), "fetch", "failed", is_failed).await;
    let server = fixture.settle_any(Servers::kind(), "fetch").await;
    let message = server.data["status"]["message"].as_str().unwrap();
    assert!(message.contains("field is immutable"), "{message}");
    assert!(message.ends_with("delete Deployment fetch, and it is created anew"), "{message}");
    assert_eq!(conditions(&server)["Ready"].0, "False");
    assert_eq!(fixture.object(Deployments::kind(), "fetch").await.unwrap().metadata.uid, uid);
    // It is not tried again and again: the queue is idle.
    let recording = fixture.record();
    fixture.until_idle().await;
    assert_eq!(recording.writes().await, [] as [&str; 0]);

    fixture.delete(Deployments::kind(), "fetch").await;
    let is_new = |deployment: &Value| !deployment.is_null() && deployment["metadata"]["uid"] != json!(uid);
    fixture.until_any(Deployments::kind(), "fetch", "created anew", is_new).await;
    fixture.operator.stop().await;
}
