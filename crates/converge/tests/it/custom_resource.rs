//! The custom resource itself: metadata by conditional patches, status by own fields alone.

use std::sync::Arc;

use kube::{Api, api::PostParams, core::DynamicObject};
use serde_json::{Value, json};
use skep_api::kinds::MCPServer;
use skep_converge::{Applied, Child, Finalizer, Kind, Meta, Mode, Observed, Restores, Writer, annotate};
use skep_testkit::{Namespace, audit::Recording, fixtures::TestServer};

use crate::fixture::{MANAGER, interrupted_writer};

const SERVERS: Kind =
    Kind { group: "toolhive.stacklok.dev", version: "v1beta1", kind: "MCPServer", plural: "mcpservers" };
const FINALIZER: Finalizer = Finalizer("example.com/finalizer");

async fn server() -> (Namespace, Writer, Recording) {
    let test = skep_testkit::namespace().await;
    let user = test.admin("writer");
    let api: Api<MCPServer> = test.api();
    api.create(&PostParams::default(), &MCPServer::test("fetch")).await.unwrap();
    (test, Writer::new(user.client(), "skep-test", Mode::Write, Restores::default()), user.record())
}

async fn live(test: &Namespace) -> DynamicObject {
    let path = format!("{}/fetch", SERVERS.path(Some(test.name())));
    test.client().request(http::Request::get(path).body(Vec::new()).unwrap()).await.unwrap()
}

async fn foreign_apply(test: &Namespace, subresource: &str, manager: &str, body: &Value) {
    let path = format!("{}/fetch{subresource}?fieldManager={manager}", SERVERS.path(Some(test.name())));
    let request = http::Request::patch(path).header("content-type", "application/apply-patch+yaml");
    let request = request.body(serde_json::to_vec(body).unwrap()).unwrap();
    test.client().request::<Value>(request).await.unwrap();
}

#[tokio::test]
async fn finalizers_are_added_and_removed_by_patches_that_contain_nothing_else() {
    let (test, writer, recording) = server().await;
    let metadata = live(&test).await.metadata;
    FINALIZER.add(&writer, SERVERS, &metadata).await.unwrap();
    let with = live(&test).await.metadata;
    assert!(FINALIZER.is_on(&with));
    FINALIZER.remove(&writer, SERVERS, &with).await.unwrap();
    assert!(!FINALIZER.is_on(&live(&test).await.metadata));
    let bodies: Vec<Value> =
        recording.requests().await.into_iter().filter_map(|request| request.body).collect();
    assert_eq!(
        bodies,
        [
            json!({"metadata": {"finalizers": [FINALIZER.0], "resourceVersion": metadata.resource_version}}),
            json!({"metadata": {"finalizers": null, "resourceVersion": with.resource_version}}),
        ]
    );
}

#[tokio::test]
async fn a_concurrent_writer_makes_a_metadata_patch_a_conflict() {
    let (test, writer, _) = server().await;
    let stale = live(&test).await.metadata;
    let body = json!({
        "apiVersion": "toolhive.stacklok.dev/v1beta1", "kind": "MCPServer",
        "spec": {"authzConfig": {"type": "configMap", "configMap": {"name": "policies"}}},
    });
    foreign_apply(&test, "", "another-controller", &body).await;
    assert!(FINALIZER.add(&writer, SERVERS, &stale).await.unwrap_err().is_stale());
    let fresh = live(&test).await.metadata;
    FINALIZER.add(&writer, SERVERS, &fresh).await.unwrap();
    let fresh = live(&test).await.metadata;
    annotate(&writer, SERVERS, &fresh, &[("example.com/seen", "yes".to_owned())].into()).await.unwrap();
    let live = live(&test).await;
    assert_eq!(live.data["spec"]["authzConfig"]["configMap"]["name"], "policies", "theirs is untouched");
    assert_eq!(live.data["spec"]["image"], "registry.example/mcp:1");
}

fn condition(kind: &str, status: &str) -> Value {
    json!({
        "type": kind, "status": status, "reason": "Because", "message": "so",
        "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": 1,
    })
}

/// Another program reports by a plain write.
async fn foreign_update(test: &Namespace, manager: &str, change: impl FnOnce(&mut Value)) {
    let mut object = json!(live(test).await);
    change(&mut object["status"]);
    let path = format!("{}/fetch/status?fieldManager={manager}", SERVERS.path(Some(test.name())));
    let request = http::Request::put(path).body(serde_json::to_vec(&object).unwrap()).unwrap();
    test.client().request::<Value>(request).await.unwrap();
}

#[tokio::test]
async fn a_status_of_another_program_is_taken_over_once_and_fields_of_other_reporters_are_left() {
    let (test, writer, recording) = server().await;
    let theirs = json!({
        "phase": "Ready", "message": "from before", "toolConfigHash": "a",
        "conditions": [condition("Ready", "True"), condition("Old", "True")],
    });
    foreign_update(&test, "other-operator", |status| *status = theirs).await;
    let healthy = condition("BackendHealthy", "True");
    let add = |status: &mut Value| status["conditions"].as_array_mut().unwrap().push(healthy.clone());
    foreign_update(&test, "health", add).await;
    let apply = async |status: Value| {
        let child = Child::status(SERVERS, test.name().into(), "fetch".into(), status);
        let live = live(&test).await;
        let observed = Observed::of(&live, "skep-test");
        writer.apply_status(&child, &Meta::of(&live.metadata), &observed).await.unwrap()
    };

    let ours = json!({"phase": "Ready", "conditions": [condition("Ready", "True")]});
    assert!(matches!(apply(ours.clone()).await, Applied::Written(_)));
    assert_eq!(apply(ours.clone()).await, Applied::Unchanged);
    let after = live(&test).await;
    let expected = json!({"phase": "Ready", "conditions": [condition("Ready", "True"), healthy]});
    assert_eq!(after.data["status"], expected, "fields that are no longer desired are removed");
    let entries = after.metadata.managed_fields.unwrap();
    let mut managers: Vec<_> = entries
        .iter()
        .filter(|entry| entry.subresource.is_some())
        .map(|entry| (entry.manager.as_deref().unwrap(), entry.operation.as_deref().unwrap()))
        .collect();
    managers.sort_unstable();
    assert_eq!(managers, [("health", "Update"), ("skep-test", "Apply")]);

    foreign_update(&test, "other-operator", |status| status["message"] = json!("still here")).await;
    apply(json!({"phase": "Pending", "conditions": [condition("Ready", "False")]})).await;
    assert_eq!(live(&test).await.data["status"]["message"], "still here", "once is enough");
    let requests = recording.requests().await;
    let (tried, made): (Vec<_>, Vec<_>) = requests
        .iter()
        .filter(|request| request.is_write())
        .partition(|one| one.query.contains("dryRun=All"));
    let texts = |requests: &[&skep_testkit::audit::Request]| -> Vec<String> {
        requests.iter().map(ToString::to_string).collect()
    };
    assert_eq!(texts(&tried), ["patch mcpservers/status fetch"], "a takeover is tried first");
    let writes = ["patch mcpservers fetch", "patch mcpservers/status fetch", "patch mcpservers/status fetch"];
    assert_eq!(texts(&made), writes);
}

#[tokio::test]
async fn a_takeover_of_a_status_with_a_concurrent_report_is_a_conflict_and_its_retry_loses_nothing() {
    let (test, _, _) = server().await;
    let test = Arc::new(test);
    let theirs = json!({"phase": "Ready", "conditions": [condition("Ready", "True")]});
    foreign_update(&test, "other-operator", |status| *status = theirs).await;
    let healthy = condition("BackendHealthy", "True");
    let (other, reported) = (test.clone(), healthy.clone());
    let writer = interrupted_writer(&test.admin("interrupted"), async move {
        let add = |status: &mut Value| status["conditions"].as_array_mut().unwrap().push(reported);
        foreign_update(&other, "health", add).await;
    });
    let apply = async || {
        let ours = json!({"phase": "Pending", "conditions": [condition("Ready", "False")]});
        let child = Child::status(SERVERS, test.name().into(), "fetch".into(), ours);
        let live = live(&test).await;
        let observed = Observed::of(&live, MANAGER);
        writer.apply_status(&child, &Meta::of(&live.metadata), &observed).await
    };

    let error = apply().await.unwrap_err();
    assert!(error.is_stale(), "{error}");
    assert_eq!(live(&test).await.data["status"]["phase"], "Ready", "nothing is written yet");
    assert!(matches!(apply().await.unwrap(), Applied::Written(_)));
    let after = live(&test).await;
    let expected = json!({"phase": "Pending", "conditions": [condition("Ready", "False"), healthy]});
    assert_eq!(after.data["status"], expected);
    let of_status =
        after.metadata.managed_fields.unwrap().into_iter().filter(|entry| entry.subresource.is_some());
    let mut managers: Vec<_> = of_status.filter_map(|entry| entry.manager).collect();
    managers.sort_unstable();
    assert_eq!(managers, ["health", MANAGER]);
}

#[tokio::test]
async fn two_writers_share_a_status_and_its_conditions() {
    let (test, writer, recording) = server().await;
    let status = |value: Value| Child::status(SERVERS, test.name().into(), "fetch".into(), value);
    let apply = async |child: &Child| {
        let live = live(&test).await;
        let observed = Observed::of(&live, "skep-test");
        writer.apply_status(child, &Meta::of(&live.metadata), &observed).await.unwrap()
    };
    let ours = status(
        json!({"phase": "Pending", "conditions": [condition("Ready", "False"), condition("Old", "True")]}),
    );
    assert!(matches!(apply(&ours).await, Applied::Written(_)));
    let theirs = json!({
        "apiVersion": "toolhive.stacklok.dev/v1beta1", "kind": "MCPServer",
        "status": {"message": "from the runtime", "conditions": [condition("BackendHealthy", "True")]},
    });
    foreign_apply(&test, "/status", "runtime", &theirs).await;
    assert_eq!(
        apply(&ours).await,
        Applied::Unchanged,
        "fields of the other writer are no drift, and an empty write is not sent"
    );

    let ours = status(json!({"phase": "Ready", "conditions": [condition("Ready", "True")]}));
    assert!(matches!(apply(&ours).await, Applied::Written(_)));
    let live = live(&test).await;
    assert_eq!(live.data["status"]["phase"], "Ready");
    assert_eq!(live.data["status"]["message"], "from the runtime");
    let mut types: Vec<&str> = live.data["status"]["conditions"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|c| c["type"].as_str())
        .collect();
    types.sort_unstable();
    assert_eq!(types, ["BackendHealthy", "Ready"], "our dropped condition is removed, the other one stays");
    assert_eq!(recording.writes().await, ["patch mcpservers/status fetch", "patch mcpservers/status fetch"]);
}
