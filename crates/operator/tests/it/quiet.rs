//! Nothing is written when nothing changes.

use std::collections::BTreeSet;

use crate::kinds::Servers;
use kube::core::DynamicObject;
use serde_json::json;
use skep_api::kinds::{MCPOIDCConfig, MCPServer};
use skep_converge::Kind;
use skep_operator::resources::{ConfigMaps, Deployments, RoleBindings, Roles, ServiceAccounts, Services};
use skep_testkit::{
    audit::Request,
    fixtures::{TestOidcConfig, TestServer},
};
use skep_world::Watched;

use crate::fixture::Fixture;

/// Everything that belongs to the server of that name, with its state.
async fn state(fixture: &Fixture, name: &str) -> Vec<(String, Option<String>)> {
    let runner = format!("{name}-proxy-runner");
    let objects: [(Kind, String); 8] = [
        (Servers::kind(), name.into()),
        (Deployments::kind(), name.into()),
        (Services::kind(), format!("mcp-{name}-proxy")),
        (ServiceAccounts::kind(), runner.clone()),
        (ServiceAccounts::kind(), format!("{name}-sa")),
        (Roles::kind(), runner.clone()),
        (RoleBindings::kind(), runner),
        (ConfigMaps::kind(), format!("{name}-runconfig")),
    ];
    let mut state = Vec::new();
    for (kind, name) in objects {
        let object: DynamicObject =
            fixture.object(kind, &name).await.unwrap_or_else(|| panic!("no {} {name}", kind.kind));
        state.push((format!("{} {name}", kind.kind), object.metadata.resource_version));
    }
    state
}

#[tokio::test]
async fn a_settled_server_costs_no_request_not_even_after_a_restart() {
    let fixture = Fixture::new().await;
    fixture.test.create_object(&MCPOIDCConfig::test("company")).await;
    let server = MCPServer::test("fetch")
        .streamable_http()
        .with_oidc("company")
        .with_rate_limit(60)
        .with_pod_annotation("vault.hashicorp.com/agent-inject", "true")
        .with_pod_template(
            json!({"spec": {"containers": [{"name": "mcp", "resources": {"limits": {"cpu": "0.5"}}}]}}),
        );
    fixture.settled(&server).await;
    let before = state(&fixture, "fetch").await;

    let fixture = fixture.restart().await;
    let recording = fixture.record();
    fixture.settle("fetch").await;
    fixture.patch("fetch", json!({"metadata": {"labels": {"touched": "yes"}}})).await;
    fixture.settle("fetch").await;
    let requests = recording.requests().await;
    // The watches of the restarted operator, and what it reads once at its start.
    let is_start = |request: &&Request| {
        matches!(request.verb.as_str(), "list" | "watch") || request.resource.starts_with('/')
    };
    let agent = format!("skep-operator/{}", env!("CARGO_PKG_VERSION"));
    let agents: BTreeSet<&str> = requests.iter().map(|request| request.agent.as_str()).collect();
    assert_eq!(agents, BTreeSet::from([agent.as_str()]));
    let requests: Vec<String> =
        requests.iter().filter(|request| !is_start(request)).map(ToString::to_string).collect();
    assert_eq!(requests, [] as [&str; 0]);
    assert_eq!(state(&fixture, "fetch").await[1..], before[1..]);
    fixture.operator.stop().await;
}

#[tokio::test]
async fn a_server_costs_few_writes_until_it_is_settled() {
    let fixture = Fixture::new().await;
    let recording = fixture.record();
    fixture.settled(&MCPServer::test("fetch")).await;
    let writes = recording.writes().await;
    assert!(writes.len() <= 9, "{writes:#?}");
    fixture.operator.stop().await;
}
