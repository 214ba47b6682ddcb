//! The readiness of pods is watched until the StatefulSet is deleted.

use k8s_openapi::api::apps::v1::StatefulSet;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;
use skep_proxy::runtime::kubernetes::{Phase, Readiness};
use tokio::time::{sleep, timeout};

use super::fixture::{Fixture, PATIENCE, config, of_generation};

async fn until(readiness: &Readiness, phase: Phase) {
    let reached = async {
        while readiness.phase() != phase {
            sleep(std::time::Duration::from_millis(10)).await;
        }
    };
    assert!(timeout(PATIENCE, reached).await.is_ok(), "never {phase:?}, but {:?}", readiness.phase());
}

async fn report(fixture: &Fixture, status: serde_json::Value) {
    let api = fixture.test.api::<StatefulSet>();
    let patch = Patch::Merge(json!({"status": status}));
    api.patch_status("files", &PatchParams::default(), &patch).await.unwrap();
}

#[tokio::test]
async fn a_server_becomes_ready_loses_its_pods_and_gets_them_back() {
    let fixture = Fixture::new().await;
    let server = fixture.run(&of_generation(1)).await;
    let mut readiness = server.readiness();
    assert_eq!(readiness.phase(), Phase::Waiting);
    assert!(!readiness.serves());
    fixture.test.kubelet().stateful_set_ready("files").await;
    assert!(timeout(PATIENCE, readiness.wait_until_ready()).await.unwrap());
    assert!(readiness.serves());

    report(&fixture, json!({"readyReplicas": 0, "availableReplicas": 0})).await;
    until(&readiness, Phase::Waiting).await;
    let mut end = server.readiness();
    assert!(
        timeout(std::time::Duration::from_millis(300), end.wait_until_deleted()).await.is_err(),
        "it is not deleted"
    );
    fixture.test.kubelet().stateful_set_ready("files").await;
    until(&readiness, Phase::Ready).await;
}

#[tokio::test]
async fn pods_of_the_previous_template_serve_but_the_server_is_not_ready() {
    let fixture = Fixture::new().await;
    let scaled = |image: &str| config(json!({"image": image, "scaling_config": {"backend_replicas": 2}}));
    fixture.run(&scaled("files:1")).await;
    fixture.test.kubelet().stateful_set_ready("files").await;

    // By the status all are ready, but it is about the previous generation.
    let readiness = fixture.run(&scaled("files:2")).await.readiness();
    assert_eq!(readiness.phase(), Phase::Serving);
    let generation = fixture.stateful_set().await.metadata.generation;
    report(&fixture, json!({"observedGeneration": generation, "updatedReplicas": 1})).await;
    sleep(std::time::Duration::from_millis(300)).await;
    assert_eq!(readiness.phase(), Phase::Serving);
    fixture.test.kubelet().stateful_set_ready("files").await;
    until(&readiness, Phase::Ready).await;
}

#[tokio::test]
async fn the_watch_ends_with_the_stateful_set() {
    let fixture = Fixture::new().await;
    let server = fixture.run(&of_generation(1)).await;
    let mut end = server.readiness();
    let ended = tokio::spawn(async move { end.wait_until_deleted().await });
    sleep(std::time::Duration::from_millis(200)).await;
    assert!(!ended.is_finished());
    fixture.test.api::<StatefulSet>().delete("files", &DeleteParams::default()).await.unwrap();
    timeout(PATIENCE, ended).await.unwrap().unwrap();
    assert_eq!(server.readiness().phase(), Phase::Deleted);
    assert!(!server.readiness().wait_until_ready().await);

    // Another of the same name is another server, and its proxy another process.
    fixture.run(&of_generation(2)).await;
    fixture.test.kubelet().stateful_set_ready("files").await;
    assert_eq!(server.readiness().phase(), Phase::Deleted);
}

#[tokio::test]
async fn waiting_is_a_watch_of_each_kind_and_no_further_request() {
    let fixture = Fixture::new().await;
    let recording = fixture.proxy.record();
    let server = fixture.run(&of_generation(1)).await;
    let watching = async {
        for kind in ["statefulsets", "services"] {
            while recording.count("watch", kind, "").await == 0 {
                sleep(std::time::Duration::from_millis(20)).await;
            }
        }
    };
    timeout(PATIENCE, watching).await.unwrap();
    fixture.test.kubelet().stateful_set_ready("files").await;
    until(&server.readiness(), Phase::Ready).await;
    sleep(std::time::Duration::from_secs(3)).await;
    let mut requests: Vec<String> = recording.requests().await.iter().map(ToString::to_string).collect();
    // The watches start beside each other.
    requests.split_at_mut(6).1.sort();
    let expected = [
        "get services mcp-files-headless",
        "get services mcp-files",
        "get statefulsets files",
        "patch statefulsets files",
        "patch services mcp-files-headless",
        "patch services mcp-files",
        "list services",
        "list statefulsets files",
        "watch services",
        "watch statefulsets files",
    ];
    assert_eq!(requests, expected);
}
