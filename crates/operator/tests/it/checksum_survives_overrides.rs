//! The checksum survives pod-template overrides.

use serde_json::json;
use skep_api::kinds::MCPServer;
use skep_testkit::fixtures::TestServer;
use skep_world::Watched;

use crate::{
    fixture::Fixture,
    kinds::{AuthzConfigs, ExternalAuthConfigs, OidcConfigs, TelemetryConfigs, ToolConfigs, WebhookConfigs},
    references::create_references,
};

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
    create_references(&fixture).await;
    let mut server = MCPServer::test("fetch")
        .streamable_http()
        .with_oidc("oidc")
        .with_pod_annotation("vault.hashicorp.com/role", "mcp");
    let refers = |name: &str| json!({"name": name});
    server.spec.telemetry_config_ref = serde_json::from_value(refers("otel")).unwrap();
    server.spec.external_auth_config_ref = serde_json::from_value(refers("exchange")).unwrap();
    server.spec.tool_config_ref = serde_json::from_value(refers("tools")).unwrap();
    server.spec.authz_config_ref = serde_json::from_value(refers("authz")).unwrap();
    server.spec.webhook_config_ref = serde_json::from_value(refers("hooks")).unwrap();
    fixture.settled(&server).await;
    let hook =
        json!({"name": "v", "url": "https://other.example", "hmacSecretRef": {"name": "s", "key": "k"}});
    for (kind, name, change) in [
        (
            OidcConfigs::kind(),
            "oidc",
            json!({"inline": {"jwksUrl": "https://login.example/other/jwks.json"}}),
        ),
        (
            TelemetryConfigs::kind(),
            "otel",
            json!({"openTelemetry": {"endpoint": "https://otel.example:4319"}}),
        ),
        (ExternalAuthConfigs::kind(), "exchange", json!({"tokenExchange": {"audience": "other"}})),
        (ToolConfigs::kind(), "tools", json!({"toolsFilter": ["other"]})),
        (
            AuthzConfigs::kind(),
            "authz",
            json!({"config": {"policies": ["forbid(principal, action, resource);"]}}),
        ),
        (WebhookConfigs::kind(), "hooks", json!({"validating": [hook]})),
    ] {
        let before = (fixture.settle("fetch").await, fixture.pod_annotations("fetch").await);
        fixture.patch_any(kind, name, json!({"spec": change})).await;
        fixture.settle_any(kind, name).await;
        let after = (fixture.settle("fetch").await, fixture.pod_annotations("fetch").await);
        assert_eq!(after.0.metadata.generation, before.0.metadata.generation);
        assert_ne!(after.1[CHECKSUM], before.1[CHECKSUM], "{}", kind.kind);
        assert_eq!(after.1["vault.hashicorp.com/role"], "mcp", "{}", kind.kind);
    }
    fixture.operator.stop().await;
}
