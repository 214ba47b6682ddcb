//! A test's own control plane can be stopped, slowed down and disconnected.

use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api,
    api::{ListParams, ObjectMeta, PostParams, WatchEvent, WatchParams},
};
use skep_testkit::ControlPlane;
use tokio_stream::StreamExt;

fn config_map(name: &str) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta { name: Some(name.into()), ..ObjectMeta::default() },
        ..ConfigMap::default()
    }
}

#[tokio::test]
async fn the_api_server_can_restart_during_a_test() {
    let mut plane = ControlPlane::start().await;
    let test = plane.namespace().await;
    let api = test.api::<ConfigMap>();
    let before = test.create_object(&config_map("before")).await;

    plane.stop_api_server();
    api.get("before").await.expect_err("no response while it is stopped");
    plane.start_api_server().await;
    assert_eq!(api.get("before").await.unwrap(), before, "stored objects are unchanged");

    plane.kill_api_server();
    plane.kill_etcd();
    plane.start_etcd();
    plane.start_api_server().await;
    assert_eq!(api.get("before").await.unwrap(), before, "a crash loses no acknowledged write");
    test.create_object(&config_map("after")).await;

    let recording = test.admin("watcher").record();
    drop_watches_and_delay(&plane, &test).await;
    assert_eq!(recording.writes().await, [] as [&str; 0], "the audit log continues across restarts");
}

/// In the same test, because a control plane takes seconds to start.
async fn drop_watches_and_delay(plane: &ControlPlane, test: &skep_testkit::Namespace) {
    let watcher: Api<ConfigMap> = Api::namespaced(test.admin("watcher").client(), test.name());
    let mut watch = Box::pin(watcher.watch(&WatchParams::default(), "0").await.unwrap());
    assert!(matches!(watch.next().await, Some(Ok(WatchEvent::Added(_)))));
    plane.api_link().drop_connections();
    while let Some(Ok(_)) = watch.next().await {}

    let api = test.api::<ConfigMap>();
    plane.api_link().delay(Duration::from_millis(200));
    let start = Instant::now();
    api.list(&ListParams::default()).await.unwrap();
    assert!(start.elapsed() >= Duration::from_millis(400), "delayed in both directions");
    plane.api_link().delay(Duration::ZERO);

    plane.api_link().cut();
    api.list(&ListParams::default()).await.expect_err("the link is cut");
    plane.api_link().restore();
    api.list(&ListParams::default()).await.unwrap();

    plane.etcd_link().delay(Duration::from_millis(100));
    let start = Instant::now();
    api.create(&PostParams::default(), &config_map("slow")).await.unwrap();
    assert!(start.elapsed() >= Duration::from_millis(200), "a write waits for etcd");
    plane.etcd_link().delay(Duration::ZERO);
}
