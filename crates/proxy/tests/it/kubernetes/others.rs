//! Fields of other managers are kept.

use std::time::Duration;

use k8s_openapi::api::{apps::v1::StatefulSet, core::v1::Service};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use skep_config::{annotations, objects::PROXY_FIELD_MANAGER};
use skep_proxy::runtime::kubernetes::{Platform, stateful_set};
use tokio::time::timeout;

use super::fixture::{Fixture, PATIENCE, config, image, of_generation};

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

/// A name proves nothing: someone else may have made the object.
#[tokio::test]
async fn objects_that_others_made_are_not_taken_until_they_are_handed_over() {
    let fixture = Fixture::new().await;
    let mut set = stateful_set(&of_generation(1), Platform::Kubernetes).unwrap();
    set.metadata.labels = Some([("app".to_owned(), "files".to_owned())].into());
    let service =
        json!({"metadata": {"name": "mcp-files"}, "spec": {"ports": [{"name": "port-8080", "port": 8080}]}});
    let service: Service = serde_json::from_value(service).unwrap();
    let sets = fixture.test.api::<StatefulSet>();
    let services = fixture.test.api::<Service>();
    let refused = async || match fixture.kubernetes().run(&of_generation(2)).await {
        Ok(_) => panic!("they are taken"),
        Err(error) => error.to_string(),
    };
    let patch = json!({"metadata": {"annotations": {annotations::ADOPT: "true"}}});

    sets.create(&PostParams::default(), &set).await.unwrap();
    let before = fixture.stateful_set().await;
    let message = refused().await;
    assert!(message.contains("StatefulSet files exists already"), "{message}");
    assert!(message.contains("skep.dev/adopt=true"), "{message}");
    assert_eq!(fixture.stateful_set().await, before);
    fixture.patch_as("kubectl", patch.clone()).await;

    services.create(&PostParams::default(), &service).await.unwrap();
    let before = (fixture.stateful_set().await, fixture.service("mcp-files").await);
    let message = refused().await;
    assert!(message.contains("Service mcp-files exists already"), "{message}");
    assert_eq!((fixture.stateful_set().await, fixture.service("mcp-files").await), before);

    services.patch("mcp-files", &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    fixture.run(&of_generation(2)).await;
    assert_ne!(fixture.service("mcp-files").await.spec, before.1.spec);
}

/// Waits until the StatefulSet runs this image, and returns it.
async fn until_image(fixture: &Fixture, expected: &str) -> StatefulSet {
    let restored = async {
        loop {
            let live = fixture.stateful_set().await;
            if image(&live) == expected {
                return live;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, restored).await.unwrap_or_else(|_| panic!("{expected} is not restored"))
}

fn with_image(image: &str) -> Value {
    json!({"spec": {"template": {"spec": {"containers": [{"name": "mcp", "image": image}]}}}})
}

async fn set_image(fixture: &Fixture, image: &str) {
    let params = PatchParams { field_manager: Some("attacker".into()), ..PatchParams::default() };
    let patch = Patch::Strategic(with_image(image));
    fixture.test.api::<StatefulSet>().patch("files", &params, &patch).await.unwrap();
}

#[tokio::test]
async fn what_others_change_while_a_proxy_runs_is_restored() {
    let fixture = Fixture::new().await;
    let server = fixture.run(&of_generation(1)).await;
    fixture.patch_as("autoscaler", json!({"spec": {"replicas": 3}})).await;
    set_image(&fixture, "evil").await;
    let live = until_image(&fixture, "files:1").await;
    assert_eq!(live.spec.unwrap().replicas, Some(3));

    // A field that is removed has no other owner.
    let before = fixture.stateful_set().await.spec.unwrap().template;
    let remove = json!([{"op": "remove", "path": "/spec/template/spec/containers/0/securityContext"}]);
    let patch = Patch::Json::<()>(serde_json::from_value(remove).unwrap());
    fixture.test.api::<StatefulSet>().patch("files", &PatchParams::default(), &patch).await.unwrap();
    let restored = async {
        while fixture.stateful_set().await.spec.unwrap().template != before {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, restored).await.expect("the template is restored");

    // Its Services.
    let services = fixture.test.api::<Service>();
    let is_restored = async || {
        let restored = async {
            loop {
                let live = services.get_opt("mcp-files").await.unwrap();
                if live.is_some_and(|live| live.spec.unwrap().selector.unwrap()["app"] == "files") {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(PATIENCE, restored).await.expect("the Service is restored");
    };
    let elsewhere = Patch::Merge(json!({"spec": {"selector": {"app": "evil"}}}));
    services.patch("mcp-files", &PatchParams::default(), &elsewhere).await.unwrap();
    is_restored().await;
    services.delete("mcp-files", &DeleteParams::default()).await.unwrap();
    is_restored().await;
    drop(server);
}

#[tokio::test]
async fn two_proxies_of_one_generation_do_not_undo_each_other_while_they_run() {
    let fixture = Fixture::new().await;
    let old = fixture.run(&config(json!({"mcpserver_generation": 1, "image": "old"}))).await;
    // The API server records seconds. Within one, two proxies that own the same fields are not told apart.
    let second = || std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let applied = second();
    while second() == applied {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let new = fixture.run(&config(json!({"mcpserver_generation": 1, "image": "new"}))).await;
    let recording = fixture.proxy.record();
    // Only the one that has applied last answers.
    set_image(&fixture, "evil").await;
    until_image(&fixture, "new").await;
    let applies = || async {
        let requests = recording.requests().await.into_iter();
        let applies =
            requests.filter(|request| request.verb == "patch" && request.resource == "statefulsets");
        applies.map(|request| request.body.unwrap()).collect::<Vec<_>>()
    };
    let images: Vec<_> = applies().await.iter().map(|body| body.pointer(IMAGE).unwrap().clone()).collect();
    assert_eq!(images, ["new"]);
    drop((old, new));
}

const IMAGE: &str = "/spec/template/spec/containers/0/image";

#[tokio::test]
async fn a_server_that_is_deleted_is_not_created_again() {
    let fixture = Fixture::new().await;
    let server = fixture.run(&of_generation(1)).await;
    // Its deletion takes a while, as when the garbage collector deletes its pods first.
    fixture.patch_as("collector", json!({"metadata": {"finalizers": ["example.com/slow"]}})).await;
    let recording = fixture.proxy.record();
    fixture.test.api::<StatefulSet>().delete("files", &DeleteParams::default()).await.unwrap();
    fixture.test.api::<Service>().delete("mcp-files", &DeleteParams::default()).await.unwrap();
    // The proxy looks whether there is something to restore.
    let looked = async {
        while recording.count("get", "statefulsets", "").await == 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, looked).await.expect("the proxy notices it");
    fixture.patch_as("collector", json!({"metadata": {"finalizers": null}})).await;
    assert!(!server.readiness().wait_until_serving().await, "it is deleted");
    assert_eq!(recording.writes().await, [] as [&str; 0]);
}
