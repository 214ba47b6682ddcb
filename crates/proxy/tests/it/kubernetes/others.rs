//! Fields of other managers are kept.

use k8s_openapi::api::{apps::v1::StatefulSet, core::v1::Service};
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use skep_config::{annotations, objects::PROXY_FIELD_MANAGER};
use skep_proxy::runtime::kubernetes::{Platform, stateful_set};

use super::fixture::{Fixture, config, of_generation};

#[tokio::test]
async fn an_autoscaler_s_replicas_a_restart_and_an_injector_s_labels_survive() {
    let fixture = Fixture::new().await;
    fixture.run(&of_generation(1)).await;
    let api = fixture.test.api::<StatefulSet>();
    let scale = PatchParams { field_manager: Some("hpa".into()), ..PatchParams::default() };
    api.patch_scale("files", &scale, &Patch::Merge(json!({"spec": {"replicas": 3}}))).await.unwrap();
    let restarted = json!({annotations::KUBECTL_RESTARTED_AT: "2026-01-01T00:00:00Z"});
    let template = json!({"metadata": {"annotations": restarted, "labels": {"injected": "yes"}}});
    fixture.patch_as("kubectl-rollout", json!({"spec": {"template": template}})).await;
    fixture.patch_as("injector", json!({"metadata": {"labels": {"injected": "yes"}}})).await;
    let service = fixture.test.api::<Service>();
    let cloud = Patch::Merge(json!({"metadata": {"annotations": {"cloud": "yes"}}}));
    service.patch("mcp-files", &PatchParams::default(), &cloud).await.unwrap();

    fixture.run(&of_generation(2)).await;
    let live = fixture.stateful_set().await;
    assert_eq!(live.metadata.labels.unwrap()["injected"], "yes");
    let spec = live.spec.unwrap();
    assert_eq!(spec.replicas, Some(3));
    let metadata = spec.template.metadata.unwrap();
    assert_eq!(metadata.labels.unwrap()["injected"], "yes");
    let pod_annotations = metadata.annotations.unwrap();
    assert_eq!(pod_annotations[annotations::KUBECTL_RESTARTED_AT], "2026-01-01T00:00:00Z");
    assert_eq!(pod_annotations[annotations::MCPSERVER_GENERATION], "2");
    assert_eq!(fixture.service("mcp-files").await.metadata.annotations.unwrap()["cloud"], "yes");
}

/// It is immutable, so it stays; a StatefulSet that skep creates has Parallel.
#[tokio::test]
async fn the_pod_management_policy_of_an_existing_stateful_set_is_kept() {
    let policy = async |fixture: &Fixture| {
        fixture.run(&of_generation(2)).await;
        fixture.stateful_set().await.spec.unwrap().pod_management_policy.unwrap()
    };
    let taken_over = Fixture::new().await;
    let mut theirs = stateful_set(&of_generation(1), Platform::Kubernetes).unwrap();
    theirs.spec.as_mut().unwrap().pod_management_policy = None;
    taken_over.test.api::<StatefulSet>().create(&PostParams::default(), &theirs).await.unwrap();
    assert_eq!(policy(&taken_over).await, "OrderedReady");
    assert_eq!(policy(&Fixture::new().await).await, "Parallel");
}

/// The paths that the proxy owns in the live StatefulSet.
async fn owned(fixture: &Fixture) -> Vec<String> {
    let entries = fixture.stateful_set().await.metadata.managed_fields.unwrap();
    let ours = entries.into_iter().find(|entry| entry.manager.as_deref() == Some(PROXY_FIELD_MANAGER));
    let ours = ours.unwrap();
    assert_eq!(ours.operation.as_deref(), Some("Apply"));
    let mut paths = Vec::new();
    collect(&ours.fields_v1.unwrap().0, "", &mut paths);
    paths
}

fn collect(fields: &Value, path: &str, paths: &mut Vec<String>) {
    for (key, below) in fields.as_object().into_iter().flatten() {
        let path = format!("{path}/{}", key.trim_start_matches("f:"));
        collect(below, &path, paths);
        paths.push(path);
    }
}

#[tokio::test]
async fn the_annotation_of_a_restart_is_not_copied() {
    let fixture = Fixture::new().await;
    fixture.run(&of_generation(1)).await;
    let restarted = json!({annotations::KUBECTL_RESTARTED_AT: "2026-01-01T00:00:00Z"});
    let patch = json!({"spec": {"template": {"metadata": {"annotations": restarted}}}});
    fixture.patch_as("kubectl-rollout", patch).await;
    fixture.run(&of_generation(2)).await;
    let owned = owned(&fixture).await;
    assert!(owned.iter().any(|path| path.ends_with(annotations::MCPSERVER_GENERATION)), "{owned:?}");
    assert!(!owned.iter().any(|path| path.ends_with(annotations::KUBECTL_RESTARTED_AT)), "{owned:?}");
}

#[tokio::test]
async fn the_annotation_of_a_restart_that_toolhive_s_proxy_copied_is_kept() {
    let fixture = Fixture::new().await;
    fixture.run(&of_generation(1)).await;
    let restarted = json!({annotations::KUBECTL_RESTARTED_AT: "2026-01-01T00:00:00Z"});
    let patch = json!({"spec": {"template": {"metadata": {"annotations": restarted}}}});
    fixture.patch_as("kubectl-rollout", patch).await;
    // What ToolHive's proxy applies, with the annotation of the live object.
    let mut applied = json!(stateful_set(&of_generation(1), Platform::Kubernetes).unwrap());
    let pod_annotations = &mut applied["spec"]["template"]["metadata"]["annotations"];
    pod_annotations[annotations::KUBECTL_RESTARTED_AT] = json!("2026-01-01T00:00:00Z");
    let theirs = PatchParams::apply(PROXY_FIELD_MANAGER).force();
    fixture.test.api::<StatefulSet>().patch("files", &theirs, &Patch::Apply(applied)).await.unwrap();

    fixture.run(&of_generation(2)).await;
    let pod_annotations =
        fixture.stateful_set().await.spec.unwrap().template.metadata.unwrap().annotations.unwrap();
    assert_eq!(pod_annotations[annotations::KUBECTL_RESTARTED_AT], "2026-01-01T00:00:00Z");
}

#[tokio::test]
async fn replicas_are_owned_only_if_the_run_config_sets_them_also_to_zero() {
    let fixture = Fixture::new().await;
    fixture.run(&config(json!({}))).await;
    assert!(!owned(&fixture).await.contains(&"/spec/replicas".to_owned()));
    for replicas in [2, 0] {
        fixture.run(&config(json!({"scaling_config": {"backend_replicas": replicas}}))).await;
        assert!(owned(&fixture).await.contains(&"/spec/replicas".to_owned()));
        assert_eq!(fixture.stateful_set().await.spec.unwrap().replicas, Some(replicas));
    }
}

#[tokio::test]
async fn fields_that_are_removed_from_the_patch_are_removed() {
    let fixture = Fixture::new().await;
    let patch = json!({"metadata": {"labels": {"tier": "gold"}}, "spec": {
        "nodeSelector": {"disk": "ssd"}, "containers": [{"name": "side", "image": "side:1"}],
    }});
    fixture.run(&config(json!({"k8s_pod_template_patch": patch.to_string()}))).await;
    fixture.run(&config(json!({}))).await;
    let template = fixture.stateful_set().await.spec.unwrap().template;
    assert_eq!(template.metadata.unwrap().labels.unwrap().get("tier"), None);
    let spec = template.spec.unwrap();
    assert_eq!(spec.node_selector, None);
    assert_eq!(spec.containers.len(), 1);
}
