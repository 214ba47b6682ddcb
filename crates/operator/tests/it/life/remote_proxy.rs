//! An MCPRemoteProxy from its creation to its deletion.

use crate::kinds::RemoteProxies;
use kube::{api::DeleteParams, core::DynamicObject};
use serde_json::{Value, json};
use skep_api::kinds::MCPRemoteProxy;
use skep_converge::Kind;
use skep_operator::resources::{ConfigMaps, Deployments, RoleBindings, Roles, ServiceAccounts, Services};
use skep_testkit::fixtures::TestRemoteProxy;
use skep_world::Watched;

use crate::{
    fixture::{Fixture, conditions},
    references::{PERMIT, create_references},
};

const CHECKSUM: &str = "toolhive.stacklok.dev/runconfig-checksum";

async fn settled(fixture: &Fixture, proxy: &MCPRemoteProxy) -> DynamicObject {
    fixture.test.create_object(proxy).await;
    fixture.settle_any(RemoteProxies::kind(), "fetch").await
}

fn ready(object: &DynamicObject) -> (&str, (String, String)) {
    (object.data["status"]["phase"].as_str().unwrap(), conditions(object)["Ready"].clone())
}

fn is(phase: &'static str) -> impl Fn(&DynamicObject) -> bool {
    move |object| object.data["status"]["phase"] == phase
}

/// The children that the proxy called fetch always has.
fn children() -> [(Kind, &'static str); 6] {
    [
        (ServiceAccounts::kind(), "fetch-remote-proxy-runner"),
        (Roles::kind(), "fetch-remote-proxy-runner"),
        (RoleBindings::kind(), "fetch-remote-proxy-runner"),
        (ConfigMaps::kind(), "fetch-runconfig"),
        (Services::kind(), "mcp-fetch-remote-proxy"),
        (Deployments::kind(), "fetch"),
    ]
}

#[tokio::test]
async fn a_remote_proxy_is_pending_then_ready_and_rolls_when_its_spec_changes() {
    let fixture = Fixture::new().await;
    let proxy = settled(&fixture, &MCPRemoteProxy::test("fetch")).await;
    assert_eq!(ready(&proxy), ("Pending", ("False".into(), "DeploymentNotReady".into())));
    let url = format!("http://mcp-fetch-remote-proxy.{}.svc.cluster.local:8080", fixture.test.name());
    assert_eq!(proxy.data["status"]["url"], url);

    let kubelet = fixture.test.kubelet();
    kubelet.pod_of("fetch", "fetch-1").await;
    let proxy = fixture.until_object(RemoteProxies::kind(), "fetch", "ready", is("Ready")).await;
    assert_eq!(ready(&proxy).1, ("True".into(), "DeploymentReady".into()));
    assert_eq!(proxy.data["status"]["message"], "Remote proxy is running");

    let before = fixture.pod_annotations("fetch").await;
    fixture
        .patch_any(RemoteProxies::kind(), "fetch", json!({"spec": {"remoteUrl": "https://other.example"}}))
        .await;
    fixture.settle_any(RemoteProxies::kind(), "fetch").await;
    assert_ne!(fixture.pod_annotations("fetch").await[CHECKSUM], before[CHECKSUM], "the pods roll");
    let note = "updated the proxy's Deployment: the configuration changed";
    assert_eq!(fixture.events().await, [("ProxyUpdated".to_owned(), note.to_owned())]);

    kubelet.pod_waiting("fetch-1", "CrashLoopBackOff").await;
    let failed = fixture.until_object(RemoteProxies::kind(), "fetch", "failed", is("Failed")).await;
    assert_eq!(failed.data["status"]["message"], "the proxy's pod fails: CrashLoopBackOff");
    kubelet.pod_running("fetch-1").await;
    fixture.until_object(RemoteProxies::kind(), "fetch", "ready", is("Ready")).await;
    fixture.operator.stop().await;
}

/// Everything that a spec can refer to or override.
fn everything() -> Value {
    json!({
        "headerForward": {
            "addPlaintextHeaders": {"X-Team": "sky"},
            "addHeadersFromSecret": [{"headerName": "X-Key", "valueSecretRef": {"name": "s", "key": "k"}}],
        },
        "oidcConfigRef": {"name": "oidc", "audience": "https://mcp.example", "resourceUrl": "https://mcp.example"},
        "authzConfig": {"type": "inline", "inline": {"policies": [PERMIT], "primaryUpstreamProvider": "company"}},
        "audit": {"enabled": true},
        "toolConfigRef": {"name": "tools"},
        "externalAuthConfigRef": {"name": "exchange"},
        "authServerRef": {"name": "login"},
        "telemetryConfigRef": {"name": "otel"},
        "resources": {"limits": {"cpu": "0.5"}},
        "podTemplateSpec": {
            "metadata": {"labels": {"tier": "edge"}},
            "spec": {"containers": [{"name": "log", "image": "registry.example/log:1"}], "nodeSelector": {"disk": "ssd"}},
        },
        "resourceOverrides": {
            "proxyDeployment": {
                "annotations": {"owner": "a"}, "labels": {"cost": "b"}, "env": [{"name": "X", "value": "1"}],
                "imagePullSecrets": [{"name": "pull"}],
                "podTemplateMetadataOverrides": {"annotations": {"vault": "yes"}, "labels": {"mesh": "on"}},
            },
            "proxyService": {"annotations": {"cloud": "c"}, "labels": {"exposed": "no"}},
        },
        "groupRef": {"name": "group"},
        "sessionStorage": {"provider": "redis", "address": "redis:6379", "passwordRef": {"name": "s", "key": "k"}},
    })
}

/// The state of the proxy and its children, without what each write changes.
async fn state(fixture: &Fixture) -> Vec<Value> {
    let mut state = Vec::new();
    for (kind, name) in children() {
        let mut child =
            json!(fixture.object(kind, name).await.unwrap_or_else(|| panic!("no {} {name}", kind.kind)));
        for key in ["managedFields", "resourceVersion", "generation"] {
            child["metadata"].as_object_mut().unwrap().remove(key);
        }
        state.push(child);
    }
    let mut status = fixture.object(RemoteProxies::kind(), "fetch").await.unwrap().data["status"].take();
    status["observedGeneration"].take();
    for condition in status["conditions"].as_array_mut().unwrap() {
        condition["observedGeneration"].take();
        condition["lastTransitionTime"].take();
    }
    state.push(status);
    state
}

#[tokio::test]
async fn everything_removed_from_the_spec_is_removed_from_children_and_status() {
    let fixture = Fixture::new().await;
    create_references(&fixture).await;
    settled(&fixture, &MCPRemoteProxy::test("fetch")).await;
    let bare = state(&fixture).await;
    fixture.patch_any(RemoteProxies::kind(), "fetch", json!({"spec": everything()})).await;
    let full = fixture.settle_any(RemoteProxies::kind(), "fetch").await;
    assert_eq!(full.data["status"]["phase"], "Pending", "{:#}", full.data["status"]);
    assert_eq!(conditions(&full).len(), 11, "{:#?}", conditions(&full));
    assert!(fixture.object(ConfigMaps::kind(), "fetch-authz-inline").await.is_some());

    let nothing =
        everything().as_object().unwrap().keys().map(|field| (field.clone(), Value::Null)).collect();
    fixture.patch_any(RemoteProxies::kind(), "fetch", json!({"spec": Value::Object(nothing)})).await;
    fixture.settle_any(RemoteProxies::kind(), "fetch").await;
    similar_asserts::assert_eq!(state(&fixture).await, bare);
    assert!(fixture.object(ConfigMaps::kind(), "fetch-authz-inline").await.is_none());
    fixture.operator.stop().await;
}

#[tokio::test]
async fn a_service_account_of_the_user_replaces_the_generated_one() {
    let fixture = Fixture::new().await;
    settled(&fixture, &MCPRemoteProxy::test("fetch")).await;
    let account = async || {
        let template = fixture.deployment("fetch").await.spec.unwrap().template;
        let made = fixture.object(ServiceAccounts::kind(), "fetch-remote-proxy-runner").await.is_some();
        let role = fixture.object(Roles::kind(), "fetch-remote-proxy-runner").await.is_some();
        (template.spec.unwrap().service_account_name.unwrap(), made, role)
    };
    assert_eq!(account().await, ("fetch-remote-proxy-runner".into(), true, true));
    fixture.patch_any(RemoteProxies::kind(), "fetch", json!({"spec": {"serviceAccount": "mine"}})).await;
    fixture.settle_any(RemoteProxies::kind(), "fetch").await;
    assert_eq!(account().await, ("mine".into(), false, false));
    fixture.patch_any(RemoteProxies::kind(), "fetch", json!({"spec": {"serviceAccount": null}})).await;
    fixture.settle_any(RemoteProxies::kind(), "fetch").await;
    assert_eq!(account().await, ("fetch-remote-proxy-runner".into(), true, true));
    fixture.operator.stop().await;
}

#[tokio::test]
async fn a_remote_proxy_is_deleted_at_once_and_its_children_by_the_garbage_collector() {
    let fixture = Fixture::new().await;
    let proxy = settled(&fixture, &MCPRemoteProxy::test("fetch")).await;
    assert_eq!(proxy.metadata.finalizers, None);
    let recording = fixture.record();
    fixture.test.api::<MCPRemoteProxy>().delete("fetch", &DeleteParams::default()).await.unwrap();
    assert!(fixture.object(RemoteProxies::kind(), "fetch").await.is_none(), "nothing holds it back");
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    assert_eq!(recording.writes().await, [] as [&str; 0]);
    let owner = json!([{
        "apiVersion": "toolhive.stacklok.dev/v1beta1", "kind": "MCPRemoteProxy", "name": "fetch",
        "uid": proxy.metadata.uid, "controller": true, "blockOwnerDeletion": true,
    }]);
    for (kind, name) in children() {
        // No garbage collector runs here, so they still exist and can be inspected.
        let child = fixture.object(kind, name).await.unwrap();
        assert_eq!(json!(child.metadata.owner_references), owner, "{} {name}", kind.kind);
        assert_eq!(child.metadata.finalizers, None);
    }
    fixture.operator.stop().await;
}
