//! A writer that changes fields of the operator back at once does not start a loop, and delays nothing else.

use std::{sync::Arc, time::Duration};

use futures::{StreamExt, TryStreamExt};
use kube::{
    Api,
    api::{Patch, PatchParams},
    core::DynamicObject,
    runtime::{WatchStreamExt, watcher},
};
use serde_json::{Value, json};
use skep_api::kinds::MCPServer;
use skep_converge::Kind;
use skep_operator::resources::{ConfigMaps, Deployments, RoleBindings, Roles, Services};
use skep_testkit::{
    audit::{Recording, Request},
    fixtures::TestServer,
};
use skep_world::Watched;
use tokio::task::JoinSet;

use crate::{
    fixture::{Fixture, conditions},
    kinds::Servers,
};

/// How long the hostile controller writes.
const WAR: Duration = Duration::from_secs(60);
/// How often the operator may write a child meanwhile.
const WRITES: usize = 12;

/// The children, and what the hostile controller wants them to be.
fn hostile_fields() -> [(Kind, &'static str, Value); 5] {
    let image =
        json!({"spec": {"template": {"spec": {"containers": [{"name": "toolhive", "image": "hostile"}]}}}});
    [
        (Deployments::kind(), "fetch", image),
        (Services::kind(), "mcp-fetch-proxy", json!({"spec": {"sessionAffinity": "None"}})),
        (Roles::kind(), "fetch-proxy-runner", json!({"rules": []})),
        (RoleBindings::kind(), "fetch-proxy-runner", json!({"subjects": []})),
        (ConfigMaps::kind(), "fetch-runconfig", json!({"data": {"runconfig.json": "{}"}})),
    ]
}

/// What a controller that is never content makes of the children: another value of another field each time.
fn restless_fields(turn: usize) -> [(Kind, &'static str, Value); 5] {
    let hostile = format!("hostile-{turn}");
    let container = match turn % 3 {
        0 => json!({"image": hostile}),
        1 => json!({"args": [hostile]}),
        _ => json!({"env": [{"name": "TOOLHIVE_RUNTIME", "value": hostile}]}),
    };
    let mut deployment = json!({"spec": {"template": {"spec": {"containers": [container]}}}});
    deployment["spec"]["template"]["spec"]["containers"][0]["name"] = json!("toolhive");
    let service = match turn % 2 {
        0 => json!({"spec": {"sessionAffinity": "None"}}),
        _ => json!({"metadata": {"labels": {"toolhive": hostile}}}),
    };
    let role = json!({"rules": [{"apiGroups": [""], "resources": [hostile], "verbs": ["get"]}]});
    let subjects = json!([{"kind": "ServiceAccount", "name": hostile, "namespace": "default"}]);
    [
        (Deployments::kind(), "fetch", deployment),
        (Services::kind(), "mcp-fetch-proxy", service),
        (Roles::kind(), "fetch-proxy-runner", role),
        (RoleBindings::kind(), "fetch-proxy-runner", json!({"subjects": subjects})),
        (ConfigMaps::kind(), "fetch-runconfig", json!({"data": {"runconfig.json": hostile}})),
    ]
}

/// Applies its fields whenever the object changes, at once.
async fn rewrite(api: Api<DynamicObject>, kind: Kind, name: &'static str, fields: Value) {
    let config = watcher::Config::default().fields(&format!("metadata.name={name}"));
    let mut events = watcher(api.clone(), config).default_backoff().applied_objects().boxed();
    let mut body = json!({"apiVersion": kind.api_version(), "kind": kind.kind, "metadata": {"name": name}});
    for (field, value) in fields.as_object().unwrap() {
        body[field] = value.clone();
    }
    while events.try_next().await.is_ok_and(|object| object.is_some()) {
        let params = PatchParams::apply("hostile").force();
        // It changes nothing where its value is already there.
        api.patch(name, &params, &Patch::Apply(&body)).await.expect("the hostile controller writes");
    }
}

/// Merges other fields four times a second, whether they have changed or not.
async fn rewrite_forever(fixture: &Fixture) {
    for turn in 0.. {
        for (kind, name, fields) in restless_fields(turn) {
            let params = PatchParams { field_manager: Some("hostile".into()), ..PatchParams::default() };
            fixture.api(kind).patch(name, &params, &Patch::Strategic(&fields)).await.expect("it writes");
        }
        tokio::time::sleep(Duration::from_millis(250)).await;
    }
}

fn start(fixture: &Fixture) -> JoinSet<()> {
    let mut controllers = JoinSet::new();
    for (kind, name, fields) in hostile_fields() {
        controllers.spawn(rewrite(fixture.api(kind), kind, name, fields));
    }
    controllers
}

/// Few writes to each child and to the status, and one event.
async fn assert_calm(fixture: &Fixture, recording: &Recording) {
    let requests = recording.requests().await;
    for (kind, name, _) in hostile_fields() {
        let is_one = |request: &&Request| {
            request.is_write() && request.resource == kind.plural && request.name == name
        };
        let writes: Vec<_> = requests.iter().filter(is_one).collect();
        assert!((2..=WRITES).contains(&writes.len()), "{} {name}: {writes:#?}", kind.kind);
    }
    let statuses: Vec<_> = requests.iter().filter(|request| request.subresource == "status").collect();
    assert!(statuses.len() <= WRITES, "{} writes to the status: {statuses:#?}", statuses.len());
    let events = fixture.events().await;
    let contended: Vec<_> = events.iter().filter(|(reason, _)| reason == "Contended").collect();
    assert_eq!(contended.len(), 1, "{events:#?}");
}

#[tokio::test]
async fn a_field_that_another_controller_changes_back_is_left_alone_and_all_others_converge() {
    let fixture = Arc::new(Fixture::new().await);
    let server = json!({"spec": {"sessionAffinity": "ClientIP"}});
    fixture.settled(&MCPServer::test("fetch").streamable_http()).await;
    fixture.patch("fetch", server).await;
    fixture.settle("fetch").await;

    let recording = fixture.record();
    let controllers = start(&fixture);
    let is_contended = |object: &DynamicObject| conditions(object).contains_key("Contended");
    let object = fixture.until_object(Servers::kind(), "fetch", "contended", is_contended).await;
    let all = object.data["status"]["conditions"].as_array().unwrap().iter();
    let condition = all.into_iter().find(|one| one["type"] == "Contended").unwrap();
    assert!(condition["message"].as_str().unwrap().contains("hostile changes"), "{condition:#}");

    // Everything else of the same object.
    fixture.patch("fetch", json!({"spec": {"image": "registry.example/mcp:2"}})).await;
    let is_new = |deployment: &Value| {
        let container = &deployment["spec"]["template"]["spec"]["containers"][0];
        container["args"]
            .as_array()
            .is_some_and(|args| args.iter().any(|arg| arg == "registry.example/mcp:2"))
    };
    fixture.until_any(Deployments::kind(), "fetch", "converged", is_new).await;

    tokio::time::sleep(WAR).await;
    assert_calm(&fixture, &recording).await;
    drop(controllers);
    Arc::into_inner(fixture).unwrap().operator.stop().await;
}

#[tokio::test]
async fn a_controller_that_changes_another_field_to_another_value_each_time_causes_few_writes() {
    let fixture = Fixture::new().await;
    fixture.settled(&MCPServer::test("fetch").streamable_http()).await;
    let recording = fixture.record();
    let hostile = tokio::time::timeout(WAR, rewrite_forever(&fixture));
    assert!(hostile.await.is_err(), "it writes for a minute");
    let object = fixture.object(Servers::kind(), "fetch").await.unwrap();
    assert!(conditions(&object).contains_key("Contended"), "{object:#?}");
    assert_calm(&fixture, &recording).await;
    fixture.operator.stop().await;
}
