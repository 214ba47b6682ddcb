//! The checksum survives pod-template overrides.

use serde_json::json;
use skep_api::kinds::{MCPOIDCConfig, MCPServer};
use skep_testkit::fixtures::{TestOidcConfig, TestServer};
use skep_world::Watched;

use crate::{fixture::Fixture, kinds::OidcConfigs};

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

#[tokio::test]
async fn with_overrides_set_a_changed_configuration_rolls_the_proxy_of_an_unchanged_spec() {
    let fixture = Fixture::new().await;
    fixture.test.create_object(&MCPOIDCConfig::test("company")).await;
    let server = MCPServer::test("fetch")
        .streamable_http()
        .with_oidc("company")
        .with_pod_annotation("vault.hashicorp.com/role", "mcp");
    let before = (fixture.settled(&server).await, fixture.pod_annotations("fetch").await);
    let change = json!({"spec": {"inline": {"jwksUrl": "https://issuer.example/other/jwks.json"}}});
    fixture.patch_any(OidcConfigs::kind(), "company", change).await;
    fixture.settle_any(OidcConfigs::kind(), "company").await;
    let after = (fixture.settle("fetch").await, fixture.pod_annotations("fetch").await);
    assert_eq!(after.0.metadata.generation, before.0.metadata.generation);
    assert_ne!(after.1[CHECKSUM], before.1[CHECKSUM]);
    assert_eq!(after.1["vault.hashicorp.com/role"], "mcp");
    fixture.operator.stop().await;
}
