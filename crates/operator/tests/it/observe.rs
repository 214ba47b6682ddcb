//! An observing operator reports what it would write, and writes nothing.

use crate::kinds::Servers;
use std::time::Duration;

use serde_json::json;
use skep_api::kinds::MCPServer;
use skep_operator::{
    run::{self, Election},
    settings::Settings,
};
use skep_testkit::{fixtures::TestServer, free_port};
use skep_world::Watched;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::watch,
    time::timeout,
};

use crate::{
    fixture::{Fixture, options},
    plan::only_tried,
};

pub(crate) async fn fetched(port: u16, path: &str) -> String {
    let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)).await else { return String::new() };
    stream
        .write_all(format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").as_bytes())
        .await
        .unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).await.unwrap();
    response
}

/// Waits until the metrics have this line.
pub(crate) async fn until_counted(port: u16, line: &str) {
    let counted = async {
        while !fetched(port, "/metrics").await.lines().any(|known| known == line) {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let waited = timeout(Duration::from_secs(30), counted).await;
    assert!(waited.is_ok(), "no {line} in {}", fetched(port, "/metrics").await);
}

#[tokio::test]
async fn an_observer_counts_planned_writes_and_writes_nothing() {
    let fixture = Fixture::new().await.stopped().await;
    fixture.test.create_object(&MCPServer::test("fetch").streamable_http()).await;
    let recording = fixture.record();
    let (metrics, health) = (free_port(), free_port());
    let mut options = options(vec![fixture.test.name().into()], Settings::default());
    options.observe = true;
    options.migrate = true;
    (options.metrics, options.health) = (([127, 0, 0, 1], metrics).into(), ([127, 0, 0, 1], health).into());
    // Whether another replica holds the lease or not, it is not requested.
    let lease =
        Election { namespace: fixture.test.name().into(), lease: "operator".into(), identity: "me".into() };
    options.election = Some(lease);
    let (stop, stopped) = watch::channel(false);
    let config = fixture.user.config();
    let observer = tokio::spawn(async move { run::run(config, options, stopped).await.expect("it runs") });

    until_counted(metrics, r#"skep_operator_observed_objects{kind="MCPServer",verdict="change"} 1"#).await;
    until_counted(metrics, r#"skep_operator_planned_writes{kind="Deployment",verb="create"} 1"#).await;
    assert!(fetched(health, "/readyz").await.starts_with("HTTP/1.1 200"));
    assert!(fetched(health, "/healthz").await.starts_with("HTTP/1.1 200"));
    only_tried(&recording).await;
    until_counted(metrics, "skep_operator_writes_total 0").await;

    // The active operator reconciles until it is idle; then the spec changes while it is
    // stopped.
    let other = fixture.test.admin("in-charge");
    let charge = Fixture::of(fixture.test, other.clone(), other.config(), Settings::default());
    charge.settle("fetch").await;
    until_counted(metrics, r#"skep_operator_observed_objects{kind="MCPServer",verdict="settled"} 1"#).await;
    until_counted(metrics, r#"skep_operator_planned_writes{kind="Deployment",verb="create"} 0"#).await;
    let charge = charge.stopped().await;
    charge.patch("fetch", json!({"spec": {"image": "registry.example/mcp:2"}})).await;
    until_counted(metrics, "skep_operator_planned_rollouts 1").await;

    charge.patch_any(Servers::kind(), "fetch", json!({"metadata": {"finalizers": null}})).await;
    charge.delete(Servers::kind(), "fetch").await;
    until_counted(metrics, r#"skep_operator_observed_objects{kind="MCPServer",verdict="change"} 0"#).await;
    until_counted(metrics, "skep_operator_planned_rollouts 0").await;
    only_tried(&recording).await;
    stop.send_replace(true);
    observer.await.unwrap();
}
