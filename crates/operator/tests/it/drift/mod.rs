//! Each drift alone: every field that the operator owns, in a child or in a status, changed by hand and removed by hand,
//! is restored by one write.

mod further_kinds;
mod leaves;

use crate::kinds::{RemoteProxies, Servers};
use skep_operator::resources::{ConfigMaps, Deployments, RoleBindings, Roles, ServiceAccounts, Services};
use std::time::Duration;

use futures::future::join_all;
use kube::core::DynamicObject;
use serde_json::{Value, json};
use skep_api::kinds::{MCPOIDCConfig, MCPRemoteProxy, MCPServer};
use skep_converge::{Kind, Restores};
use skep_operator::settings::Settings;
use skep_testkit::fixtures::{TestOidcConfig, TestRemoteProxy, TestServer};
use skep_world::Watched;
use tokio::time::timeout;

use crate::fixture::Fixture;
use leaves::{other, owned_leaves};

/// An object, or its status, with the manager of what the operator owns there.
#[derive(Clone, Copy)]
struct Place<'a> {
    manager: &'static str,
    kind: Kind,
    name: &'a str,
    subresource: Option<&'static str>,
}

impl Place<'_> {
    fn status(&self) -> Self {
        Self { subresource: Some("status"), ..*self }
    }
}

/// The children of an MCPServer called fetch.
fn of_a_server() -> [(Kind, &'static str); 7] {
    [
        (ServiceAccounts::kind(), "fetch-proxy-runner"),
        (ServiceAccounts::kind(), "fetch-sa"),
        (Roles::kind(), "fetch-proxy-runner"),
        (RoleBindings::kind(), "fetch-proxy-runner"),
        (ConfigMaps::kind(), "fetch-runconfig"),
        (Services::kind(), "mcp-fetch-proxy"),
        (Deployments::kind(), "fetch"),
    ]
}

/// The children of an MCPRemoteProxy called fetch.
fn of_a_remote_proxy() -> [(Kind, &'static str); 7] {
    [
        (ServiceAccounts::kind(), "fetch-remote-proxy-runner"),
        (Roles::kind(), "fetch-remote-proxy-runner"),
        (RoleBindings::kind(), "fetch-remote-proxy-runner"),
        (ConfigMaps::kind(), "fetch-authz-inline"),
        (ConfigMaps::kind(), "fetch-runconfig"),
        (Services::kind(), "mcp-fetch-remote-proxy"),
        (Deployments::kind(), "fetch"),
    ]
}

fn server_place() -> Place<'static> {
    Place { manager: "skep-mcpserver", kind: Servers::kind(), name: "fetch", subresource: None }
}
fn remote_proxy_place() -> Place<'static> {
    Place { manager: "skep-mcpremoteproxy", kind: RemoteProxies::kind(), name: "fetch", subresource: None }
}

/// An operator that restores each drift at once: it would take these, one after the other, for a controller that works against it.
async fn restoring() -> Fixture {
    let restores = Restores { of_a_field: u32::MAX, of_an_object: u32::MAX };
    Fixture::with(Settings { restores, ..Settings::default() }).await
}

/// The comparable part of an object: everything that not every write changes.
fn content(object: &DynamicObject) -> Value {
    let mut value = serde_json::to_value(object).unwrap();
    for key in ["managedFields", "resourceVersion", "generation"] {
        value["metadata"].as_object_mut().unwrap().remove(key);
    }
    // The transition time of a condition is lost once it was changed by hand.
    for condition in value["status"]["conditions"].as_array_mut().into_iter().flatten() {
        condition.as_object_mut().unwrap().remove("lastTransitionTime");
    }
    value
}

/// The object right after the change, before it can have been reverted.
async fn patched(fixture: &Fixture, place: Place<'_>, operation: &Value) -> Option<DynamicObject> {
    let subresource = place.subresource.map(|name| format!("/{name}")).unwrap_or_default();
    let path = place.kind.path(Some(fixture.test.name()));
    let path = format!("{path}/{}{subresource}?fieldManager=another-writer", place.name);
    let request = http::Request::patch(path).header("content-type", "application/json-patch+json");
    let request = request.body(serde_json::to_vec(&json!([operation])).unwrap()).unwrap();
    match fixture.test.client().request(request).await {
        Ok(object) => Some(object),
        // What cannot be changed by hand cannot drift.
        Err(kube::Error::Api(status)) if status.code == 422 => None,
        Err(error) => panic!("{operation}: {error}"),
    }
}

async fn put_back(fixture: &Fixture, Place { kind, name, .. }: Place<'_>, good: &Value, what: &str) {
    let back = async {
        while content(&fixture.object(kind, name).await.unwrap()) != *good {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(Duration::from_secs(20), back)
        .await
        .unwrap_or_else(|_| panic!("{} {name}: {what} is not put back", kind.kind));
}

/// Makes each change alone, and returns how many were drifts and were restored.
async fn try_each(fixture: &Fixture, place: Place<'_>, changes: Vec<Value>) -> usize {
    let Place { kind, name, subresource, .. } = place;
    let good = content(&fixture.object(kind, name).await.unwrap());
    let recording = fixture.record();
    let mut drifts = 0;
    for change in changes {
        let before = content(&fixture.object(kind, name).await.unwrap());
        assert_eq!(before, good, "no drift to start with");
        let Some(changed) = patched(fixture, place, &change).await else { continue };
        // A value that the API server defaults again is no drift.
        if content(&changed) == good {
            continue;
        }
        drifts += 1;
        put_back(fixture, place, &good, &change.to_string()).await;
    }
    let requests = recording.requests().await;
    let on_it = requests.iter().filter(|request| {
        let same = request.subresource == subresource.unwrap_or_default() && request.resource == kind.plural;
        request.is_write() && same && request.name == name
    });
    let on_it: Vec<_> = on_it.map(|request| format!("{request}: {}", request.code)).collect();
    assert_eq!(on_it.len(), drifts, "{} {name}: one write for each drift, and not {on_it:?}", kind.kind);
    drifts
}

/// Two changes of every leaf that is owned: to another value, and to none.
async fn changes(fixture: &Fixture, place: Place<'_>) -> Vec<Value> {
    let Place { manager, kind, name, subresource } = place;
    let live = fixture.object(kind, name).await.unwrap_or_else(|| panic!("no {} {name}", kind.kind));
    let good = content(&live);
    let leaves = owned_leaves(&live, manager, subresource);
    // With another uid the object would have another owner, and is not touched.
    let leaves = leaves.iter().filter(|pointer| !pointer.starts_with("/metadata/ownerReferences/0/uid"));
    let changes = leaves.filter_map(|pointer| {
        let value = good.pointer(pointer)?;
        Some([
            json!({"op": "replace", "path": pointer, "value": other(value)}),
            json!({"op": "remove", "path": pointer}),
        ])
    });
    changes.flatten().collect()
}

/// Whether a change is made while there is no other: the controller decides what the operator writes at all, so a drift beside it
/// could hide that nothing is restored; and the API server rejects a RoleBinding for as long as it has a changed Role in its cache.
fn is_made_alone(kind: Kind, change: &Value) -> bool {
    let path = change["path"].as_str().unwrap();
    kind == RoleBindings::kind() || path.starts_with("/metadata/ownerReferences")
}

/// Every owned leaf of the children, which are in parallel, each with one drift at a time. Returns how many drifts were made and
/// restored.
async fn try_children(fixture: &Fixture, manager: &'static str, children: &[(Kind, &str)]) -> usize {
    let mut drifts = 0;
    let mut beside = Vec::new();
    for (kind, name) in children {
        let place = Place { manager, kind: *kind, name, subresource: None };
        let (alone, others): (Vec<_>, Vec<_>) =
            changes(fixture, place).await.into_iter().partition(|change| is_made_alone(*kind, change));
        drifts += try_each(fixture, place, alone).await;
        beside.push((place, others));
    }
    let beside = beside.into_iter().map(|(place, changes)| try_each(fixture, place, changes));
    drifts + join_all(beside).await.into_iter().sum::<usize>()
}

/// The same for a status: each field of it, a whole condition, all conditions, and the whole status.
async fn try_status(fixture: &Fixture, owner: Place<'_>) -> usize {
    let removals = ["/status/conditions/0", "/status/conditions", "/status"];
    let removals = removals.map(|path| json!({"op": "remove", "path": path}));
    assert_eq!(try_each(fixture, owner.status(), removals.into()).await, 3);
    let changes = changes(fixture, owner.status()).await;
    try_each(fixture, owner.status(), changes).await
}

fn overrides() -> Value {
    json!({
        "proxyDeployment": {
            "annotations": {"owner": "a"}, "labels": {"cost": "b"}, "env": [{"name": "X", "value": "1"}],
            "imagePullSecrets": [{"name": "pull"}],
            "podTemplateMetadataOverrides": {"annotations": {"vault": "yes"}, "labels": {"mesh": "on"}},
        },
        "proxyService": {"annotations": {"cloud": "c"}, "labels": {"exposed": "no"}},
    })
}

#[tokio::test]
async fn each_field_that_the_operator_owns_is_restored_alone_by_one_write() {
    let fixture = restoring().await;
    fixture.test.create_object(&MCPOIDCConfig::test("company")).await;
    let mut server = MCPServer::test("fetch").streamable_http().with_oidc("company").with_rate_limit(5);
    server.spec.resource_overrides = serde_json::from_value(overrides()).unwrap();
    server.spec.resources =
        serde_json::from_value(json!({"limits": {"cpu": "0.5", "memory": "128Mi"}})).unwrap();
    fixture.settled(&server).await;
    let drifts = try_children(&fixture, server_place().manager, &of_a_server()).await;
    assert!(drifts > 120, "only {drifts} drifts could be made");
    fixture.operator.stop().await;
}

#[tokio::test]
async fn each_field_of_a_remote_proxys_children_is_restored_alone_by_one_write() {
    let fixture = restoring().await;
    let mut proxy = MCPRemoteProxy::test("fetch");
    proxy.spec.resource_overrides = serde_json::from_value(overrides()).unwrap();
    proxy.spec.resources = serde_json::from_value(json!({"limits": {"cpu": "0.5"}})).unwrap();
    let policies =
        json!({"type": "inline", "inline": {"policies": ["permit(principal, action, resource);"]}});
    proxy.spec.authz_config = serde_json::from_value(policies).unwrap();
    proxy.spec.pod_template_spec = serde_json::from_value(json!({
        "metadata": {"annotations": {"mesh": "yes"}},
        "spec": {
            "containers": [
                {"name": "toolhive", "env": [{"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}]},
                {"name": "log", "image": "registry.example/log:1", "tty": true, "ports": [{"containerPort": 24224}],
                 "securityContext": {"privileged": false}},
            ],
            "initContainers": [{"name": "wait", "image": "registry.example/wait:1", "command": ["true"]}],
            "volumes": [
                {"name": "tmp", "emptyDir": {"sizeLimit": "0.5Gi"}},
                {"name": "token", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}},
            ],
            "tolerations": [{"key": "k", "operator": "Exists", "tolerationSeconds": 3, "effect": "NoExecute"}],
            "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
                {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]},
            ]}}},
            "terminationGracePeriodSeconds": 5, "automountServiceAccountToken": false,
        },
    }))
    .unwrap();
    fixture.test.create_object(&proxy).await;
    fixture.settle_any(RemoteProxies::kind(), "fetch").await;
    let drifts = try_children(&fixture, remote_proxy_place().manager, &of_a_remote_proxy()).await;
    assert!(drifts > 140, "only {drifts} drifts could be made");
    fixture.operator.stop().await;
}

#[tokio::test]
async fn each_field_of_a_status_is_restored_alone_by_one_write() {
    let fixture = restoring().await;
    // Of the same name, which is no conflict while neither has children: each refers to missing objects.
    fixture.test.create_object(&MCPServer::test("fetch").with_oidc("absent")).await;
    let mut proxy = MCPRemoteProxy::test("fetch").with_header_from("X-Key", "absent", "key");
    proxy.spec.oidc_config_ref = MCPServer::test("fetch").with_oidc("absent").spec.oidc_config_ref;
    fixture.test.create_object(&proxy).await;
    for owner in [server_place(), remote_proxy_place()] {
        fixture.settle_any(owner.kind, owner.name).await;
        let drifts = try_status(&fixture, owner).await;
        assert!(drifts > 15, "{}: only {drifts} drifts could be made", owner.kind.kind);
    }
    fixture.operator.stop().await;
}

#[tokio::test]
async fn a_condition_of_another_writer_stays() {
    let fixture = restoring().await;
    fixture.settled(&MCPServer::test("fetch")).await;
    fixture.test.create_object(&MCPRemoteProxy::test("elsewhere")).await;
    fixture.settle_any(RemoteProxies::kind(), "elsewhere").await;
    let theirs = json!({
        "type": "BackendHealthy", "status": "True", "reason": "Probed", "message": "it responds",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    });
    let recording = fixture.record();
    for owner in [server_place(), Place { name: "elsewhere", ..remote_proxy_place() }] {
        let add = json!({"op": "add", "path": "/status/conditions/-", "value": theirs});
        patched(&fixture, owner.status(), &add).await.unwrap();
        let after = fixture.settle_any(owner.kind, owner.name).await;
        let conditions = after.data["status"]["conditions"].as_array().unwrap();
        assert_eq!(conditions.last(), Some(&theirs), "{}", owner.kind.kind);
    }
    assert_eq!(recording.writes().await, [] as [&str; 0]);
    fixture.operator.stop().await;
}

#[tokio::test]
async fn a_port_that_was_renumbered_by_hand_is_restored() {
    let fixture = restoring().await;
    fixture.settled(&MCPServer::test("fetch")).await;
    fixture.test.create_object(&MCPRemoteProxy::test("elsewhere")).await;
    fixture.settle_any(RemoteProxies::kind(), "elsewhere").await;
    for (manager, name) in [
        (server_place().manager, "mcp-fetch-proxy"),
        (remote_proxy_place().manager, "mcp-elsewhere-remote-proxy"),
    ] {
        let service = Place { manager, kind: Services::kind(), name, subresource: None };
        let good = content(&fixture.object(service.kind, name).await.unwrap());
        let renumbered = json!({"op": "replace", "path": "/spec/ports/0/port", "value": 8081});
        patched(&fixture, service, &renumbered).await.unwrap();
        put_back(&fixture, service, &good, "the port").await;
    }
    fixture.operator.stop().await;
}
