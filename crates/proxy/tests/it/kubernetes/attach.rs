//! Attaching to a pod, as far as an API server without a kubelet supports it: which pod, which request, and that it is allowed.
//! The streams themselves need a kubelet, and are not tested here.

use k8s_openapi::api::core::v1::Pod;
use kube::{Resource, api::ObjectMeta};
use serde_json::json;
use skep_proxy::runtime::{Attach, kubernetes::Server};
use tokio::time::{sleep, timeout};

use super::fixture::{Fixture, PATIENCE, config};

async fn pod(fixture: &Fixture, server: &Server, name: &str, owned: bool) {
    let template = server.stateful_set().spec.clone().unwrap().template;
    let owner = server.stateful_set().controller_owner_ref(&()).unwrap();
    let metadata = ObjectMeta {
        name: Some(name.into()),
        owner_references: owned.then(|| vec![owner]),
        ..template.metadata.unwrap()
    };
    fixture.test.create_object(&Pod { metadata, spec: template.spec, status: None }).await;
}

#[tokio::test]
async fn the_ready_pod_of_the_server_is_attached_to_with_the_proxy_s_permissions() {
    let fixture = Fixture::new().await;
    let server = fixture.run(&config(json!({"transport": "stdio"}))).await;
    let kubelet = fixture.test.kubelet();
    // The first by name has the label and belongs to another owner; the second is not ready.
    pod(&fixture, &server, "another", false).await;
    kubelet.pod_running("another").await;
    pod(&fixture, &server, "files-0", true).await;
    kubelet.pod_waiting("files-0", "CrashLoopBackOff").await;

    let attachment = server.attachment();
    let recording = fixture.proxy.record();
    let attaching = tokio::spawn(async move { attachment.attach().await.map(drop) });
    sleep(std::time::Duration::from_millis(500)).await;
    assert_eq!(recording.count("get", "pods", "attach").await, 0);

    pod(&fixture, &server, "files-1", true).await;
    kubelet.pod_running("files-1").await;
    let request = timeout(PATIENCE, async {
        loop {
            let requests = recording.requests().await;
            if let Some(request) = requests.into_iter().find(|request| request.subresource == "attach") {
                return request;
            }
            sleep(std::time::Duration::from_millis(50)).await;
        }
    })
    .await
    .unwrap();
    assert_eq!((request.verb.as_str(), request.name.as_str()), ("get", "files-1"));
    assert_eq!(request.query, "&stdin=true&stdout=true&container=mcp");
    // Allowed, and not possible: no node runs the pod.
    assert_eq!(request.code, 400);
    attaching.abort();
}
