//! What a proxy reports of its server, by the Role that the operator has created for it.

use crate::{fixture::Fixture, kinds::Servers, life::server::stateful_set};
use k8s_openapi::api::rbac::v1::Role;
use kube::{
    Api,
    api::{Patch, PatchParams},
    core::DynamicObject,
};
use serde_json::{Value, json};
use skep_api::{
    conditions::{MCPInitialized, Reason},
    kinds::{MCPServer, MCPServerPhase},
};
use skep_config::objects::PROXY_STATUS_MANAGER;
use skep_testkit::fixtures::TestServer;
use skep_world::Watched;

fn report(name: &str, reason: MCPInitialized, server: Value) -> Patch<Value> {
    let reason = Reason::from(reason);
    let status = if reason.met { "True" } else { "False" };
    let condition = json!({
        "type": reason.type_, "status": status, "reason": reason.reason, "message": "a page of HTML",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    });
    Patch::Apply(json!({
        "apiVersion": "toolhive.stacklok.dev/v1beta1", "kind": "MCPServer", "metadata": {"name": name},
        "status": {"conditions": [condition], "server": server},
    }))
}

/// Whether the operator's status is at least a second younger than the proxy's: managed fields have no finer times.
fn is_written_after_the_report(server: &DynamicObject) -> bool {
    let reported = |manager: &str| {
        let entries = server.metadata.managed_fields.iter().flatten();
        let mut reports = entries.filter(|entry| entry.subresource.as_deref() == Some("status"));
        reports.find(|entry| entry.manager.as_deref() == Some(manager)).and_then(|entry| entry.time.as_ref())
    };
    reported("skep-mcpserver").map(|time| time.0) > reported(PROXY_STATUS_MANAGER).map(|time| time.0)
}

#[tokio::test]
async fn a_server_is_ready_when_its_proxy_reports_that_it_responds_and_no_report_is_undone() {
    let fixture = Fixture::new().await;
    fixture.settled(&MCPServer::test("fetch")).await;
    fixture.settled(&MCPServer::test("other")).await;
    let proxy = fixture.test.user("proxy");
    let role = fixture.test.api::<Role>().get("fetch-proxy-runner").await.unwrap();
    fixture.test.grant(&proxy, role.rules.unwrap()).await;
    let api: Api<MCPServer> = Api::namespaced(proxy.client(), fixture.test.name());
    let params = PatchParams::apply(PROXY_STATUS_MANAGER).force();
    let offered = json!({"name": "fetch", "toolCount": 2, "tools": [{"name": "a", "digest": "1"}, {"name": "b", "digest": "2"}]});
    let send = async |reason, server: &Value| {
        api.patch_status("fetch", &params, &report("fetch", reason, server.clone())).await.unwrap()
    };

    send(MCPInitialized::Initializing, &json!({})).await;
    fixture.test.kubelet().pod_of("fetch", "fetch-1").await;
    fixture.test.create_object(&stateful_set("fetch")).await;
    fixture.until("fetch", "waiting", |status| status.message.as_deref() == Some("a page of HTML")).await;
    send(MCPInitialized::Initialized, &offered).await;
    fixture.until("fetch", "ready", |status| status.phase == Some(MCPServerPhase::Ready)).await;
    send(MCPInitialized::NotMCP, &offered).await;
    let failed = |status: &skep_api::kinds::MCPServerStatus| status.phase == Some(MCPServerPhase::Failed);
    fixture.until("fetch", "failed", failed).await;
    send(MCPInitialized::CredentialRequired, &offered).await;
    fixture.until("fetch", "ready", |status| status.phase == Some(MCPServerPhase::Ready)).await;
    send(MCPInitialized::Initialized, &offered).await;
    fixture.settle("fetch").await;

    // Another list of tools concerns readers only: the operator writes nothing, and keeps it.
    let recording = fixture.record();
    let other = json!({"name": "fetch", "toolCount": 1, "tools": [{"name": "a", "digest": "3"}]});
    send(MCPInitialized::Initialized, &other).await;
    fixture.settle("fetch").await;
    assert_eq!(recording.writes().await, Vec::<String>::new());
    fixture.patch("fetch", json!({"spec": {"image": "registry.example/mcp:2"}})).await;
    fixture.settle("fetch").await;
    let live = fixture.object(Servers::kind(), "fetch").await.unwrap();
    assert_eq!(live.data["status"]["server"], other);

    // Whoever writes last, a restart costs no write.
    let mut image = 3;
    while !is_written_after_the_report(&fixture.object(Servers::kind(), "fetch").await.unwrap()) {
        fixture.patch("fetch", json!({"spec": {"image": format!("registry.example/mcp:{image}")}})).await;
        fixture.settle("fetch").await;
        image += 1;
    }
    let fixture = fixture.restart().await;
    let recording = fixture.record();
    fixture.settle("fetch").await;
    fixture.until_idle().await;
    assert_eq!(recording.writes().await, Vec::<String>::new());

    let foreign = report("other", MCPInitialized::Initialized, offered);
    let error = api.patch_status("other", &params, &foreign).await.unwrap_err();
    assert!(
        matches!(error, kube::Error::Api(status) if status.code == 403),
        "a proxy reports its own server alone"
    );
    fixture.operator.stop().await;
}
