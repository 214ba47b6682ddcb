//! The checksum survives pod-template overrides.

use serde_json::json;
use skep_api::kinds::MCPServer;
use skep_testkit::fixtures::TestServer;

use crate::fixture::Fixture;

const CHECKSUM: &str = "toolhive.stacklok.dev/runconfig-checksum";

#[tokio::test]
async fn annotations_of_the_operator_win_and_all_others_of_the_user_survive() {
    let fixture = Fixture::new().await;
    let server = MCPServer::test("fetch")
        .with_pod_annotation("vault.hashicorp.com/agent-inject", "true")
        .with_pod_annotation(CHECKSUM, "mine");
    fixture.settled(&server).await;
    let annotations = fixture.pod_annotations("fetch").await;
    assert_eq!(annotations["vault.hashicorp.com/agent-inject"], "true");
    assert_eq!(annotations[CHECKSUM].as_str().unwrap().len(), 64, "the operator's, not the user's");
    fixture.operator.stop().await;
}

#[tokio::test]
async fn the_deployments_own_annotations_never_leak_into_the_pods() {
    let fixture = Fixture::new().await;
    let mut server = MCPServer::test("fetch");
    let overrides = json!({"proxyDeployment": {"annotations": {"owner": "team-a"}}});
    server.spec.resource_overrides = serde_json::from_value(overrides).unwrap();
    fixture.settled(&server).await;
    assert_eq!(fixture.deployment("fetch").await.metadata.annotations.unwrap()["owner"], "team-a");
    assert_eq!(fixture.pod_annotations("fetch").await["owner"], json!(null));
    fixture.operator.stop().await;
}

#[tokio::test]
async fn with_overrides_set_a_changed_run_config_still_rolls_the_proxy() {
    let fixture = Fixture::new().await;
    fixture.settled(&MCPServer::test("fetch").with_pod_annotation("vault.hashicorp.com/role", "mcp")).await;
    let before = fixture.pod_annotations("fetch").await;
    fixture.patch("fetch", json!({"spec": {"audit": {"enabled": true}}})).await;
    fixture.settle("fetch").await;
    let after = fixture.pod_annotations("fetch").await;
    assert_ne!(after[CHECKSUM], before[CHECKSUM]);
    assert_eq!(after["vault.hashicorp.com/role"], "mcp");
    fixture.operator.stop().await;
}
