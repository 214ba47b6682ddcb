//! Workloads get statuses: from real controllers, or from the fake kubelet.

use std::time::Duration;

use k8s_openapi::api::{apps::v1::Deployment, core::v1::Pod};
use kube::api::ListParams;
use serde_json::json;
use skep_testkit::ControlPlane;

fn deployment(replicas: i32) -> Deployment {
    serde_json::from_value(json!({
        "metadata": {"name": "web"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "web", "image": "registry.example/web:1"}]},
            },
        },
    }))
    .unwrap()
}

#[tokio::test]
async fn the_fake_kubelet_makes_a_deployment_ready() {
    let test = skep_testkit::namespace().await;
    test.create_object(&deployment(2)).await;
    test.kubelet().deployment_ready("web").await;
    let status = test.api::<Deployment>().get("web").await.unwrap().status.unwrap();
    assert_eq!((status.ready_replicas, status.observed_generation), (Some(2), Some(1)));

    test.kubelet().pod_of("web", "web-1").await;
    let pods = test.api::<Pod>();
    assert_eq!(pods.get("web-1").await.unwrap().status.unwrap().phase.as_deref(), Some("Running"));
    test.kubelet().pod_waiting("web-1", "CrashLoopBackOff").await;
    let containers = pods.get("web-1").await.unwrap().status.unwrap().container_statuses.unwrap();
    let waiting = containers[0].state.clone().unwrap().waiting.unwrap();
    assert_eq!(waiting.reason.as_deref(), Some("CrashLoopBackOff"));
}

#[tokio::test]
async fn real_controllers_create_the_pods_of_a_deployment() {
    let mut plane = ControlPlane::start().await;
    plane.start_controller_manager(&["deployment", "replicaset"]);
    let test = plane.namespace().await;
    test.create_object(&deployment(2)).await;
    let pods = test.api::<Pod>();
    let made = async {
        while pods.list(&ListParams::default()).await.unwrap().items.len() < 2 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), made).await.expect("two pods");
}
