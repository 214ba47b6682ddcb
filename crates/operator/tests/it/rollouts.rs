//! What pods of an older template need stays until they are replaced, and what keeps them from running is reported.

use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{Pod, ServiceAccount},
};
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use skep_api::kinds::{MCPRemoteProxy, MCPServer};
use skep_operator::{resources::ServiceAccounts, settings::Settings};
use skep_testkit::fixtures::{TestRemoteProxy, TestServer};
use skep_world::Watched;

use crate::{fixture::Fixture, kinds::RemoteProxies};

async fn report_deployment(fixture: &Fixture, status: Value) {
    let patch = Patch::Merge(json!({"status": status}));
    fixture.test.api::<Deployment>().patch_status("fetch", &PatchParams::default(), &patch).await.unwrap();
}

#[tokio::test]
async fn old_pods_keep_their_service_account_until_they_are_replaced() {
    let fixture = Fixture::new().await;
    fixture.settled(&MCPServer::test("fetch")).await;
    report_deployment(&fixture, json!({"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1})).await;
    fixture.patch("fetch", json!({"spec": {"serviceAccount": "mine"}})).await;
    fixture.settle("fetch").await;
    let account = async || fixture.test.api::<ServiceAccount>().get_opt("fetch-sa").await.unwrap();
    assert!(account().await.is_some(), "the Deployment has not been rolled out yet");

    report_deployment(&fixture, json!({"observedGeneration": 2, "replicas": 2, "updatedReplicas": 1})).await;
    fixture.until_idle().await;
    assert!(account().await.is_some(), "an old pod runs");

    report_deployment(&fixture, json!({"replicas": 1, "updatedReplicas": 1})).await;
    fixture.until_any(ServiceAccounts::kind(), "fetch-sa", "pruned", Value::is_null).await;
    fixture.operator.stop().await;
}

/// `kubectl wait --for=condition=Ready` compares the generation of the condition.
#[tokio::test]
async fn ready_is_about_the_old_spec_until_its_pods_are_replaced() {
    let fixture = Fixture::new().await;
    fixture.test.create_object(&MCPRemoteProxy::test("fetch")).await;
    fixture.settle_any(RemoteProxies::kind(), "fetch").await;
    fixture.test.kubelet().pod_of("fetch", "old").await;
    report_deployment(&fixture, json!({"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1})).await;
    let is_ready_for = |generation: i64| {
        move |object: &Value| {
            let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
            let mut ready = conditions.filter(|condition| condition["type"] == "Ready");
            ready.any(|ready| ready["status"] == "True" && ready["observedGeneration"] == generation)
        }
    };
    fixture.until_any(RemoteProxies::kind(), "fetch", "ready", is_ready_for(1)).await;

    let change = json!({"spec": {"remoteUrl": "https://b.example"}});
    fixture.patch_any(RemoteProxies::kind(), "fetch", change).await;
    let object = fixture.settle_any(RemoteProxies::kind(), "fetch").await;
    assert!(is_ready_for(1)(&json!(object)), "an old pod serves: {:#}", object.data["status"]);
    report_deployment(&fixture, json!({"observedGeneration": 2, "replicas": 2, "updatedReplicas": 1})).await;
    let object = fixture.settle_any(RemoteProxies::kind(), "fetch").await;
    assert!(is_ready_for(1)(&json!(object)), "an old pod serves: {:#}", object.data["status"]);
    report_deployment(&fixture, json!({"observedGeneration": 2, "replicas": 1, "updatedReplicas": 1})).await;
    fixture.until_any(RemoteProxies::kind(), "fetch", "replaced", is_ready_for(2)).await;
    fixture.operator.stop().await;
}

#[tokio::test]
async fn a_new_pod_that_fails_is_reported_while_an_old_one_serves() {
    let fixture = Fixture::new().await;
    fixture.test.create_object(&MCPRemoteProxy::test("fetch")).await;
    fixture.settle_any(RemoteProxies::kind(), "fetch").await;
    let kubelet = fixture.test.kubelet();
    kubelet.pod_of("fetch", "old").await;
    kubelet.pod_running("old").await;
    kubelet.pod_of("fetch", "new").await;
    let waiting = json!({"reason": "CrashLoopBackOff"});
    let ended = json!({"exitCode": 1, "reason": "Error", "message": "starting\nthe RunConfig is missing\n"});
    let container = json!({
        "name": "toolhive", "ready": false, "restartCount": 3, "image": "x", "imageID": "",
        "state": {"waiting": waiting}, "lastState": {"terminated": ended},
    });
    let status = Patch::Merge(json!({"status": {"phase": "Running", "containerStatuses": [container]}}));
    fixture.test.api::<Pod>().patch_status("new", &PatchParams::default(), &status).await.unwrap();
    let expected = "Remote proxy is running; the proxy's pod fails: CrashLoopBackOff, a container ended with exit code 1: \
                    the RunConfig is missing";
    let is_reported = |object: &Value| object["status"]["message"] == expected;
    fixture.until_any(RemoteProxies::kind(), "fetch", "reported", is_reported).await;
    fixture.operator.stop().await;
}

#[tokio::test]
async fn pull_secrets_that_openshift_adds_to_a_service_account_stay() {
    let settings = Settings { pull_secrets: vec!["registry".into()], ..Settings::default() };
    let fixture = Fixture::with(settings).await;
    fixture.settled(&MCPServer::test("fetch")).await;
    let both = json!([{"name": "registry"}, {"name": "fetch-sa-dockercfg-abcde"}]);
    let recording = fixture.record();
    fixture.patch_any(ServiceAccounts::kind(), "fetch-sa", json!({"imagePullSecrets": both})).await;
    fixture.settle("fetch").await;
    let account = fixture.object(ServiceAccounts::kind(), "fetch-sa").await.unwrap();
    assert_eq!(account.data["imagePullSecrets"], both);
    let writes = recording.writes().await;
    assert!(writes.len() <= 1, "the list is shared by one write: {writes:?}");
    fixture.operator.stop().await;
}
