//! Pods that cannot be created.

use crate::kinds::{RemoteProxies, Servers};
use serde_json::{Value, json};
use skep_api::kinds::{MCPRemoteProxy, MCPServer};
use skep_operator::resources::StatefulSets;
use skep_testkit::fixtures::{TestRemoteProxy, TestServer};
use skep_world::Watched;

use crate::fixture::Fixture;

/// The server's StatefulSet, as its proxy would create it.
fn stateful_set(name: &str) -> Value {
    let labels = json!({"app": name, "toolhive": "true"});
    json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": name, "labels": labels},
        "spec": {
            "serviceName": name,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "mcp", "image": "registry.example/mcp:1"}]},
            },
        },
    })
}

#[tokio::test]
async fn an_object_is_failed_while_the_api_server_rejects_its_pods() {
    let fixture = Fixture::new().await;
    fixture.test.create_object(&MCPServer::test("server")).await;
    fixture.test.create_object(&MCPRemoteProxy::test("proxy")).await;
    fixture.create_any(StatefulSets::kind(), &stateful_set("server")).await;
    let kubelet = fixture.test.kubelet();
    let objects = [
        (Servers::kind(), "server", "MCP server is running"),
        (RemoteProxies::kind(), "proxy", "Remote proxy is running"),
    ];
    for (kind, name, running) in objects {
        let until = async |phase: &str| {
            let reached = |object: &kube::core::DynamicObject| object.data["status"]["phase"] == phase;
            fixture.until_object(kind, name, phase, reached).await.data["status"].take()
        };
        until("Pending").await;
        kubelet.deployment_refused(name, "exceeded quota: pods").await;
        let status = until("Failed").await;
        assert_eq!(status["message"], "the proxy's pods cannot be created: exceeded quota: pods");
        let ready =
            status["conditions"].as_array().unwrap().iter().find(|one| one["type"] == "Ready").unwrap();
        assert_eq!((&ready["status"], &ready["message"]), (&json!("False"), &status["message"]));

        kubelet.deployment_let_through(name).await;
        until("Pending").await;
        kubelet.pod_of(name, &format!("{name}-1")).await;
        until("Ready").await;
        kubelet.deployment_refused(name, "exceeded quota: pods").await;
        fixture.settle_any(kind, name).await;
        assert_eq!(until("Ready").await["message"], running, "one that runs is enough");
    }
    fixture.operator.stop().await;
}
