//! An MCPServer from its creation to its deletion.

use k8s_openapi::api::{
    apps::v1::StatefulSet,
    core::v1::{ConfigMap, Pod},
};
use kube::api::DeleteParams;
use serde_json::json;
use skep_api::kinds::{MCPOIDCConfig, MCPServer, MCPServerPhase, MCPServerStatus};
use skep_testkit::fixtures::{TestOidcConfig, TestServer};

use crate::fixture::{Fixture, condition};

#[tokio::test]
async fn a_missing_reference_is_resolved_as_soon_as_it_exists() {
    let fixture = Fixture::new().await;
    let server = fixture.settled(&MCPServer::test("fetch").with_oidc("company")).await;
    assert_eq!(server.status.as_ref().unwrap().phase, Some(MCPServerPhase::Failed));
    let oidc = condition(&server, "OIDCConfigRefValidated").unwrap();
    assert_eq!(oidc, ("False".into(), "OIDCConfigRefNotFound".into()));

    fixture.test.create_object(&MCPOIDCConfig::test("company")).await;
    let server =
        fixture.until("fetch", "pending", |status| status.phase == Some(MCPServerPhase::Pending)).await;
    assert_eq!(condition(&server, "OIDCConfigRefValidated").unwrap().0, "True");
    fixture.deployment("fetch").await;
    fixture.operator.stop().await;
}

#[tokio::test]
async fn fields_removed_from_the_spec_are_removed_from_children_and_conditions() {
    let fixture = Fixture::new().await;
    fixture.test.create_object(&MCPOIDCConfig::test("company")).await;
    let mut server = MCPServer::test("fetch").with_oidc("company");
    let authz = json!({"type": "inline", "inline": {"policies": ["permit(principal, action, resource);"]}});
    server.spec.authz_config = serde_json::from_value(authz).unwrap();
    fixture.settled(&server).await;
    let config_maps = fixture.test.api::<ConfigMap>();
    config_maps.get("fetch-authz-inline").await.expect("the policies have a ConfigMap");

    fixture.patch("fetch", json!({"spec": {"authzConfig": null, "oidcConfigRef": null}})).await;
    let server = fixture.settle("fetch").await;
    assert!(config_maps.get_opt("fetch-authz-inline").await.unwrap().is_none());
    assert_eq!(condition(&server, "OIDCConfigRefValidated"), None);
    assert_eq!(server.status.unwrap().oidc_config_hash, None);
    let template = fixture.deployment("fetch").await.spec.unwrap().template;
    let volumes = template.spec.unwrap().volumes.unwrap();
    assert_eq!(volumes.iter().map(|volume| volume.name.as_str()).collect::<Vec<_>>(), ["runconfig"]);
    fixture.operator.stop().await;
}

#[tokio::test]
async fn an_invalid_spec_leaves_running_pods_alone_and_is_not_retried() {
    let fixture = Fixture::new().await;
    fixture.settled(&MCPServer::test("fetch")).await;
    let before = fixture.deployment("fetch").await.metadata.resource_version;
    fixture.patch("fetch", json!({"spec": {"podTemplateSpec": {"spec": {"containers": "many"}}}})).await;
    let server = fixture.settle("fetch").await;
    assert_eq!(server.status.as_ref().unwrap().phase, Some(MCPServerPhase::Failed));
    assert_eq!(condition(&server, "PodTemplateValid").unwrap().1, "InvalidPodTemplateSpec");
    let message = server.status.unwrap().message.unwrap();
    assert!(message.contains("podTemplateSpec.spec.containers"), "{message}");
    assert_eq!(fixture.deployment("fetch").await.metadata.resource_version, before);
    fixture.operator.stop().await;
}

#[tokio::test]
async fn a_server_is_ready_once_its_proxy_runs_and_its_stateful_set_exists() {
    let fixture = Fixture::new().await;
    fixture.settled(&MCPServer::test("fetch")).await;
    fixture.test.kubelet().pod_of("fetch", "fetch-1").await;
    let waiting = |status: &skep_api::kinds::MCPServerStatus| {
        status.message.as_ref().is_some_and(|message| message.contains("StatefulSet"))
    };
    fixture.until("fetch", "waiting for its StatefulSet", waiting).await;
    fixture.test.create_object(&stateful_set("fetch")).await;
    fixture.until("fetch", "ready", |status| status.phase == Some(MCPServerPhase::Ready)).await;
    fixture.settle("fetch").await;
    let adopted = fixture.test.api::<StatefulSet>().get("fetch").await.unwrap();
    assert_eq!(adopted.metadata.owner_references.unwrap()[0].kind, "MCPServer");

    fixture.test.kubelet().pod_waiting("fetch-1", "CrashLoopBackOff").await;
    let failed =
        fixture.until("fetch", "failed", |status| status.phase == Some(MCPServerPhase::Failed)).await;
    assert!(failed.status.unwrap().message.unwrap().contains("CrashLoopBackOff"));
    fixture.operator.stop().await;
}

/// As the proxy of a server creates it.
pub(super) fn stateful_set(name: &str) -> StatefulSet {
    let labels = json!({"app": name, "toolhive": "true", "toolhive-name": name});
    let stateful_set = json!({
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "serviceName": name,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "mcp", "image": "registry.example/mcp:1"}]},
            },
        },
    });
    serde_json::from_value(stateful_set).unwrap()
}

/// The proxy reports ready when its server takes too long, because a restart would not help.
#[tokio::test]
async fn a_server_whose_own_pods_are_not_ready_reports_the_reason() {
    let fixture = Fixture::new().await;
    // The name is also the label of its proxy: the two must be distinguished.
    fixture.settled(&MCPServer::test("mcpserver")).await;
    let kubelet = fixture.test.kubelet();
    kubelet.pod_of("mcpserver", "proxy-1").await;
    fixture.test.create_object(&stateful_set("mcpserver")).await;
    let pod = kubelet.stateful_set_waiting("mcpserver").await;
    let until = async |phase: MCPServerPhase, message: &str| {
        let reported = |status: &MCPServerStatus| {
            status.phase == Some(phase)
                && status.message.as_ref().is_some_and(|reported| reported.contains(message))
        };
        fixture.until("mcpserver", message, reported).await;
    };
    until(MCPServerPhase::Pending, "the server's pods are starting").await;
    kubelet.pod_waiting(&pod, "ErrImagePull").await;
    let image = "the server's pod mcpserver-0 waits: its image registry.example/mcp:1 cannot be pulled";
    until(MCPServerPhase::Pending, image).await;
    // The kubelet alternates between the two, which is no change.
    fixture.settle("mcpserver").await;
    let recording = fixture.record();
    kubelet.pod_waiting(&pod, "ImagePullBackOff").await;
    fixture.settle("mcpserver").await;
    assert_eq!(recording.writes().await, [] as [&str; 0]);
    kubelet.pod_waiting(&pod, "CrashLoopBackOff").await;
    until(MCPServerPhase::Failed, "the server's pod fails: CrashLoopBackOff").await;
    // A proxy that starts waits for its server: a problem of the server is the reason. The proxy's own problems take
    // precedence.
    kubelet.pod_waiting("proxy-1", "ErrImagePull").await;
    until(MCPServerPhase::Pending, "the proxy's pod proxy-1 waits: its image ").await;
    kubelet.pod_waiting("proxy-1", "ContainerCreating").await;
    until(MCPServerPhase::Failed, "the server's pod fails: CrashLoopBackOff").await;
    kubelet.pod_waiting(&pod, "CreateContainerConfigError").await;
    until(MCPServerPhase::Pending, "the server's pod mcpserver-0 waits: as the kubelet says").await;
    kubelet.pod_unschedulable(&pod).await;
    until(MCPServerPhase::Pending, "the server's pod mcpserver-0 waits: no node can run it").await;
    kubelet.pod_waiting(&pod, "ContainerCreating").await;
    until(MCPServerPhase::Pending, "the server's pods are starting").await;
    kubelet.pod_running("proxy-1").await;
    kubelet.pod_running(&pod).await;
    kubelet.stateful_set_ready("mcpserver").await;
    let ready = |status: &MCPServerStatus| status.phase == Some(MCPServerPhase::Ready);
    fixture.until("mcpserver", "ready", ready).await;
    fixture.operator.stop().await;
}

/// A proxy that is just starting would recreate deleted objects: its permission is removed first.
#[tokio::test]
async fn deleting_a_server_deletes_the_objects_that_its_proxy_created() {
    let fixture = Fixture::new().await;
    fixture.settled(&MCPServer::test("fetch")).await;
    fixture.test.create_object(&stateful_set("fetch")).await;
    fixture.settle("fetch").await;
    let recording = fixture.record();
    let api = fixture.test.api::<MCPServer>();
    api.delete("fetch", &DeleteParams::default()).await.unwrap();
    let deleted = async {
        while api.get_opt("fetch").await.unwrap().is_some() {
            tokio::time::sleep(std::time::Duration::from_millis(30)).await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(30), deleted).await.expect("the server is deleted");
    assert!(fixture.test.api::<ConfigMap>().get_opt("fetch-runconfig").await.unwrap().is_none());
    assert!(fixture.test.api::<StatefulSet>().get_opt("fetch").await.unwrap().is_none());
    let requests = recording.requests().await;
    let deleted = requests.iter().filter(|request| request.verb == "delete");
    let deleted: Vec<_> = deleted.map(|request| request.resource.as_str()).collect();
    assert_eq!(deleted, ["rolebindings", "deployments", "statefulsets", "configmaps"]);
    fixture.operator.stop().await;
}

#[tokio::test]
async fn a_rolling_restart_rolls_the_pods_once_and_is_recorded() {
    let fixture = Fixture::new().await;
    fixture.settled(&MCPServer::test("fetch")).await;
    let requested = "2026-02-03T04:05:06Z";
    let request =
        json!({"metadata": {"annotations": {"mcpserver.toolhive.stacklok.dev/restarted-at": requested}}});
    fixture.patch("fetch", request.clone()).await;
    let server = fixture.settle("fetch").await;
    assert_eq!(
        fixture.pod_annotations("fetch").await["mcpserver.toolhive.stacklok.dev/restarted-at"],
        requested
    );
    let processed =
        &server.metadata.annotations.unwrap()["mcpserver.toolhive.stacklok.dev/last-processed-restart"];
    assert_eq!(processed, requested);

    let before = fixture.deployment("fetch").await.metadata.resource_version;
    fixture.patch("fetch", request).await;
    let taken_back =
        json!({"metadata": {"annotations": {"mcpserver.toolhive.stacklok.dev/restarted-at": null}}});
    fixture.patch("fetch", taken_back).await;
    fixture.settle("fetch").await;
    assert_eq!(fixture.deployment("fetch").await.metadata.resource_version, before, "once, and not again");
    fixture.operator.stop().await;
}

#[tokio::test]
async fn an_immediate_restart_deletes_the_pods() {
    let fixture = Fixture::new().await;
    fixture.settled(&MCPServer::test("fetch")).await;
    fixture.test.kubelet().pod_of("fetch", "fetch-1").await;
    let request = json!({"metadata": {"annotations": {
        "mcpserver.toolhive.stacklok.dev/restarted-at": "2026-02-03T04:05:06Z",
        "mcpserver.toolhive.stacklok.dev/restart-strategy": "immediate",
    }}});
    fixture.patch("fetch", request).await;
    let server = fixture.settle("fetch").await;
    let pod = fixture.test.api::<Pod>().get_opt("fetch-1").await.unwrap();
    assert!(pod.is_none_or(|pod| pod.metadata.deletion_timestamp.is_some()));
    let annotations = server.metadata.annotations.unwrap();
    assert!(annotations.contains_key("mcpserver.toolhive.stacklok.dev/last-processed-restart"));
    fixture.operator.stop().await;
}

#[tokio::test]
async fn events_report_what_happened_and_why() {
    let fixture = Fixture::new().await;
    fixture.settled(&MCPServer::test("fetch")).await;
    fixture.patch("fetch", json!({"spec": {"image": "registry.example/mcp:2"}})).await;
    fixture.settle("fetch").await;
    fixture.patch("fetch", json!({"spec": {"oidcConfigRef": {"name": "missing", "audience": "a"}}})).await;
    fixture.settle("fetch").await;
    let reported = fixture.events().await;
    let expected = [
        (
            "OIDCConfigRefNotFound",
            "oidcConfigRef: MCPOIDCConfig missing does not exist in this namespace: create it; existing pods keep running",
        ),
        ("ProxyUpdated", "updated the proxy's Deployment: the spec has the new generation 2"),
    ];
    assert_eq!(reported, expected.map(|(reason, note)| (reason.to_owned(), note.to_owned())));
    fixture.operator.stop().await;
}
