//! A status that another operator has reported is taken over.

use crate::kinds::{RemoteProxies, Servers};
use serde_json::{Value, json};
use skep_api::kinds::{MCPRemoteProxy, MCPServer};
use skep_testkit::fixtures::{TestRemoteProxy, TestServer};
use skep_world::Watched;

use crate::fixture::{Fixture, conditions};

fn condition(type_: &str, status: &str, reason: &str) -> Value {
    let time = "2026-01-01T00:00:00Z";
    json!({"type": type_, "status": status, "reason": reason, "message": "theirs", "lastTransitionTime": time})
}

#[tokio::test]
async fn a_status_of_another_operator_is_taken_over_and_nothing_of_it_is_left_behind() {
    let fixture = Fixture::new().await.stopped().await;
    fixture.test.create_object(&MCPServer::test("fetch")).await;
    fixture.test.create_object(&MCPRemoteProxy::test("elsewhere")).await;
    let objects = [(Servers::kind(), "fetch"), (RemoteProxies::kind(), "elsewhere")];
    let healthy = condition("BackendHealthy", "True", "Probed");
    for (kind, name) in objects {
        let mut status = json!({
            "phase": "Ready", "url": "http://old.example", "message": "theirs", "oidcConfigHash": "a",
            "conditions": [
                condition("Ready", "True", "Ready"),
                condition("OIDCConfigRefValidated", "True", "OIDCConfigRefValid"),
                condition("SessionStorageWarning", "False", "SessionStorageWarningNotApplicable"),
            ],
        });
        fixture.report_as("thv-operator", kind, name, &status).await;
        status["conditions"].as_array_mut().unwrap().push(healthy.clone());
        fixture.report_as("health", kind, name, &status).await;
    }

    let fixture = fixture.restart().await;
    for (kind, name) in objects {
        let object = fixture.settle_any(kind, name).await;
        let (status, reported) = (&object.data["status"], conditions(&object));
        assert_eq!(status["phase"], "Pending");
        assert_eq!(status["oidcConfigHash"], Value::Null, "{status:#}");
        assert_eq!(
            reported.get("OIDCConfigRefValidated"),
            None,
            "fields that are no longer desired are removed"
        );
        assert!(status["conditions"].as_array().unwrap().contains(&healthy), "what is others' stays");
        let same = status["conditions"]
            .as_array()
            .unwrap()
            .iter()
            .find(|one| one["type"] == "SessionStorageWarning");
        assert_eq!(
            same.unwrap()["lastTransitionTime"],
            "2026-01-01T00:00:00Z",
            "what has not changed is as old as it was"
        );
        let entries = object.metadata.managed_fields.iter().flatten();
        let reporters = entries.filter(|entry| entry.subresource.as_deref() == Some("status"));
        let mut reporters: Vec<&str> = reporters.filter_map(|entry| entry.manager.as_deref()).collect();
        reporters.sort_unstable();
        assert_eq!(reporters, ["health", &format!("skep-{}", kind.kind.to_lowercase())]);
    }

    let fixture = fixture.restart().await;
    let recording = fixture.record();
    fixture.settle("fetch").await;
    assert_eq!(recording.writes().await, [] as [&str; 0], "once, and not again");
    fixture.operator.stop().await;
}
