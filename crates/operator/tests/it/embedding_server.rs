//! An EmbeddingServer from its creation to its deletion.

use crate::kinds::EmbeddingServers;
use k8s_openapi::api::{
    apps::v1::StatefulSet,
    core::v1::{Namespace, Pod, Secret, Service},
};
use kube::{
    Api,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use skep_operator::resources::{Services, StatefulSets};
use skep_operator::settings::Settings;
use skep_testkit::json::{condition, with_fields};
use skep_world::Watched;

use crate::fixture::Fixture;

fn kind() -> skep_converge::Kind {
    EmbeddingServers::kind()
}

async fn stateful_set(fixture: &Fixture) -> Value {
    json!(fixture.test.api::<StatefulSet>().get("emb").await.unwrap())
}

async fn phase(fixture: &Fixture, phase: &str) {
    fixture.until_any(kind(), "emb", phase, |object| object["status"]["phase"] == phase).await;
}

#[tokio::test]
async fn it_becomes_ready_with_its_pods_and_follows_its_spec() {
    let settings = Settings { pull_secrets: vec!["registry".into()], ..Settings::default() };
    let fixture = Fixture::with(settings).await;
    let overrides = json!({
        "statefulSet": {
            "annotations": {"team": "sky"}, "labels": {"team": "sky"},
            "podTemplateMetadataOverrides": {"labels": {"tier": "search"}, "annotations": {"scrape": "true"}},
        },
        "service": {"annotations": {"internal": "true"}, "labels": {"team": "sky"}},
    });
    let patch = json!({"spec": {
        "imagePullSecrets": [{"name": "mine"}],
        "containers": [{"name": "embedding", "workingDir": "/tmp"}],
    }});
    let spec = json!({"resourceOverrides": overrides, "podTemplateSpec": patch, "args": ["--json-output"]});
    fixture.create(kind(), "emb", spec).await;
    let object = fixture.settle_any(kind(), "emb").await;
    assert_eq!(object.data["status"]["phase"], "Pending");
    assert_eq!(condition(&object, "Ready")["reason"], "Pending");
    let live = stateful_set(&fixture).await;
    assert_eq!(live["metadata"]["labels"]["team"], "sky");
    let pods = &live["spec"]["template"];
    assert_eq!(pods["metadata"]["labels"]["tier"], "search");
    assert_eq!(
        live["spec"]["selector"]["matchLabels"]["tier"],
        Value::Null,
        "a selector can never be changed"
    );
    assert_eq!(pods["spec"]["imagePullSecrets"], json!([{"name": "mine"}, {"name": "registry"}]));
    let container = &pods["spec"]["containers"][0];
    assert_eq!(container["workingDir"], "/tmp");
    let args = json!(["--model-id", "BAAI/bge-small-en-v1.5", "--port", "8080", "--json-output"]);
    assert_eq!(container["args"], args);

    let kubelet = fixture.test.kubelet();
    kubelet.stateful_set_waiting("emb").await;
    phase(&fixture, "Downloading").await;
    let object = fixture.settle_any(kind(), "emb").await;
    let message =
        "pod emb-0 downloads the model, or waits for its image or volume: kubectl describe pod emb-0";
    assert_eq!(object.data["status"]["message"], message);
    kubelet.stateful_set_ready("emb").await;
    phase(&fixture, "Ready").await;
    let change = json!({"spec": {
        "port": 9090, "replicas": 2, "args": null, "resourceOverrides": null, "podTemplateSpec": null,
    }});
    fixture.patch_any(kind(), "emb", change).await;
    let object = fixture.settle_any(kind(), "emb").await;
    let url = format!("http://emb.{}.svc.cluster.local:9090", fixture.test.name());
    assert_eq!(object.data["status"]["url"], url, "it follows the port");
    let live = stateful_set(&fixture).await;
    assert_eq!(live["spec"]["replicas"], 2);
    assert_eq!(live["metadata"]["annotations"], Value::Null);
    assert_eq!(live["metadata"]["labels"].as_object().unwrap().len(), 4);
    let pods = &live["spec"]["template"];
    assert_eq!(pods["metadata"]["annotations"], Value::Null);
    assert_eq!(pods["metadata"]["labels"].as_object().unwrap().len(), 4);
    assert_eq!(pods["spec"]["imagePullSecrets"], json!([{"name": "registry"}]));
    assert_eq!(pods["spec"]["containers"][0]["workingDir"], Value::Null);
    let service = json!(fixture.test.api::<Service>().get("emb").await.unwrap());
    assert_eq!(service["spec"]["ports"][0]["port"], 9090);
    assert_eq!(service["metadata"]["annotations"], Value::Null);
    let reported = [("StatefulSetUpdated", "updated the StatefulSet: the spec has the new generation 2")];
    assert_eq!(fixture.events().await, reported.map(|(reason, note)| (reason.to_owned(), note.to_owned())));
    fixture.operator.stop().await;
}

#[tokio::test]
async fn a_malformed_pod_template_is_reported_once_and_existing_pods_keep_running() {
    let fixture = Fixture::new().await;
    fixture.create(kind(), "emb", json!({})).await;
    fixture.settle_any(kind(), "emb").await;
    let before = stateful_set(&fixture).await;
    let bad = json!({"spec": {"image": "registry.example/tei:2", "podTemplateSpec": {"spec": {"containers": "many"}}}});
    fixture.patch_any(kind(), "emb", bad).await;
    let object = fixture.settle_any(kind(), "emb").await;
    assert_eq!(object.data["status"]["phase"], "Failed");
    assert_eq!(condition(&object, "PodTemplateValid")["reason"], "InvalidPodTemplateSpec");
    assert_eq!(stateful_set(&fixture).await, before);
    fixture.patch_any(kind(), "emb", json!({"metadata": {"labels": {"touched": "yes"}}})).await;
    fixture.settle_any(kind(), "emb").await;
    let reported = fixture.events().await;
    assert_eq!(reported.len(), 1, "{reported:?}");
    assert_eq!(reported[0].0, "ValidationFailed");
    assert!(reported[0].1.contains("podTemplateSpec.spec.containers"), "{reported:?}");

    fixture.patch_any(kind(), "emb", json!({"spec": {"podTemplateSpec": null}})).await;
    let object = fixture.settle_any(kind(), "emb").await;
    assert_eq!(condition(&object, "PodTemplateValid")["status"], "True");
    let live = stateful_set(&fixture).await;
    assert_eq!(live["spec"]["template"]["spec"]["containers"][0]["image"], "registry.example/tei:2");
    fixture.operator.stop().await;
}

#[tokio::test]
async fn an_immutable_volume_is_reported_and_everything_else_is_changed() {
    let fixture = Fixture::new().await;
    let recording = fixture.record();
    fixture.create(kind(), "emb", json!({"modelCache": {"size": "10240Mi"}})).await;
    let object = fixture.settle_any(kind(), "emb").await;
    assert_eq!(condition(&object, "VolumeReady"), Value::Null);
    // Another notation of the same size is no change.
    fixture.patch_any(kind(), "emb", json!({"spec": {"modelCache": {"size": "10Gi"}}})).await;
    let object = fixture.settle_any(kind(), "emb").await;
    assert_eq!(condition(&object, "VolumeReady"), Value::Null);

    let changes = [
        json!({"modelCache": {"size": "20Gi"}}),
        json!({"modelCache": {"size": "10Gi", "storageClassName": "fast"}}),
        json!({"modelCache": {"storageClassName": null, "accessMode": "ReadWriteMany"}}),
        json!({"modelCache": {"accessMode": null}, "resourceOverrides": {"persistentVolumeClaim": {"labels": {"a": "b"}}}}),
        json!({"modelCache": null, "resourceOverrides": null}),
    ];
    for (number, change) in changes.into_iter().enumerate() {
        fixture.patch_any(kind(), "emb", json!({"spec": change})).await;
        let image = format!("registry.example/tei:{number}");
        fixture.patch_any(kind(), "emb", json!({"spec": {"image": image}})).await;
        let object = fixture.settle_any(kind(), "emb").await;
        assert_eq!(condition(&object, "VolumeReady")["reason"], "ModelCacheImmutable", "change {number}");
        assert_eq!(object.data["status"]["phase"], "Pending", "change {number}");
        let live = stateful_set(&fixture).await;
        let container = &live["spec"]["template"]["spec"]["containers"][0];
        assert_eq!(container["image"], image);
        assert_eq!(container["volumeMounts"][0]["name"], "model-cache");
        let claim = &live["spec"]["volumeClaimTemplates"][0]["spec"];
        assert_eq!(claim["resources"]["requests"]["storage"], "10Gi");
    }
    let reported = fixture.events().await;
    let reported: Vec<_> = reported.iter().filter(|(reason, _)| reason == "ModelCacheImmutable").collect();
    assert_eq!(reported.len(), 1, "{reported:?}");
    let rejected: Vec<_> =
        recording.requests().await.into_iter().filter(|request| request.code >= 400).collect();
    assert_eq!(rejected, []);

    fixture.delete(StatefulSets::kind(), "emb").await;
    let anew =
        |object: &Value| object["spec"].is_object() && object["spec"]["volumeClaimTemplates"].is_null();
    fixture.until_any(StatefulSets::kind(), "emb", "made anew", anew).await;
    let object = fixture.settle_any(kind(), "emb").await;
    assert_eq!(condition(&object, "VolumeReady"), Value::Null);
    fixture.operator.stop().await;
}

/// ToolHive puts a user's labels for the pods into the selector, and then cannot change them any more.
#[tokio::test]
async fn selector_labels_of_toolhive_stay_and_nothing_is_rejected() {
    let fixture = Fixture::new().await.stopped().await;
    let pods = json!({"statefulSet": {"podTemplateMetadataOverrides": {"labels": {"tier": "search"}}}});
    fixture.create(kind(), "emb", json!({"resourceOverrides": pods})).await;
    let owner = fixture.object(kind(), "emb").await.unwrap().metadata.uid.unwrap();
    let labels = json!({
        "app.kubernetes.io/component": "embedding-server", "app.kubernetes.io/instance": "emb",
        "app.kubernetes.io/managed-by": "toolhive-operator", "app.kubernetes.io/name": "embeddingserver",
        "tier": "search",
    });
    let theirs = json!({
        "metadata": {"name": "emb", "labels": labels, "ownerReferences": [{
            "apiVersion": kind().api_version(), "kind": kind().kind, "name": "emb", "uid": owner,
            "controller": true, "blockOwnerDeletion": true,
        }]},
        "spec": {"serviceName": "emb", "selector": {"matchLabels": labels}, "template": {
            "metadata": {"labels": labels}, "spec": {"containers": [{"name": "embedding", "image": "old"}]},
        }},
    });
    fixture.test.create_object(&serde_json::from_value::<StatefulSet>(theirs).unwrap()).await;
    let fixture = fixture.restart().await;
    let recording = fixture.record();
    fixture.settle_any(kind(), "emb").await;
    fixture.patch_any(kind(), "emb", json!({"spec": {"resourceOverrides": null}})).await;
    let object = fixture.settle_any(kind(), "emb").await;
    assert_eq!(object.data["status"]["phase"], "Pending");
    let live = stateful_set(&fixture).await;
    assert_eq!(live["spec"]["template"]["metadata"]["labels"], labels);
    assert_ne!(live["spec"]["template"]["spec"]["containers"][0]["image"], "old");
    assert_eq!(live["metadata"]["labels"].as_object().unwrap().len(), 4);
    assert!(recording.requests().await.iter().all(|request| request.code < 400));
    fixture.operator.stop().await;
}

#[tokio::test]
async fn it_waits_for_the_token_and_is_deleted_at_once() {
    let fixture = Fixture::new().await;
    fixture.create(kind(), "emb", json!({"hfTokenSecretRef": {"name": "hf", "key": "token"}})).await;
    let object = fixture.settle_any(kind(), "emb").await;
    let message = "hfTokenSecretRef: Secret hf does not exist: create it with the key token";
    assert_eq!(object.data["status"]["message"], message);
    assert_eq!(fixture.objects(StatefulSets::kind()).await, [] as [Value; 0]);
    let secret = json!({"metadata": {"name": "hf"}, "stringData": {"token": "x"}});
    fixture.test.create_object(&serde_json::from_value::<Secret>(secret).unwrap()).await;
    phase(&fixture, "Pending").await;
    let env = stateful_set(&fixture).await["spec"]["template"]["spec"]["containers"][0]["env"][1].clone();
    assert_eq!(
        env,
        json!({"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": {"name": "hf", "key": "token"}}})
    );

    // As ToolHive has left it.
    let finalizer = json!({"metadata": {"finalizers": ["embeddingserver.toolhive.stacklok.dev/finalizer"]}});
    fixture.patch_any(kind(), "emb", finalizer).await;
    fixture.delete(kind(), "emb").await;
    fixture.until_any(kind(), "emb", "deleted", Value::is_null).await;
    fixture.operator.stop().await;
}

#[tokio::test]
async fn manual_changes_and_deletions_are_reverted() {
    let fixture = Fixture::new().await;
    fixture.create(kind(), "emb", json!({"replicas": 2})).await;
    fixture.settle_any(kind(), "emb").await;
    fixture.patch_any(StatefulSets::kind(), "emb", json!({"spec": {"replicas": 0}})).await;
    fixture
        .until_any(StatefulSets::kind(), "emb", "scaled back", |object| object["spec"]["replicas"] == 2)
        .await;
    fixture.delete(Services::kind(), "emb").await;
    fixture.until_any(Services::kind(), "emb", "back", Value::is_object).await;
    fixture.operator.stop().await;
}

async fn rights(fixture: &Fixture) -> Value {
    stateful_set(fixture).await["spec"]["template"]["spec"]["containers"][0]["securityContext"].clone()
}

#[tokio::test]
async fn it_has_minimal_permissions_unless_the_user_overrides_them() {
    let fixture = Fixture::new().await;
    fixture.create(kind(), "emb", json!({})).await;
    fixture.settle_any(kind(), "emb").await;
    let mut least = json!({
        "allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    });
    assert_eq!(rights(&fixture).await, least);

    fixture.patch_any(kind(), "emb", json!({"spec": {"port": 80}})).await;
    fixture.settle_any(kind(), "emb").await;
    least["capabilities"]["add"] = json!(["NET_BIND_SERVICE"]);
    assert_eq!(rights(&fixture).await, least);

    let theirs = json!({"privileged": true, "allowPrivilegeEscalation": true, "seccompProfile": {"type": "Unconfined"}});
    let template = json!({"spec": {"containers": [{"name": "embedding", "securityContext": theirs}]}});
    fixture.patch_any(kind(), "emb", json!({"spec": {"podTemplateSpec": template}})).await;
    let object = fixture.settle_any(kind(), "emb").await;
    assert_eq!(object.data["status"]["phase"], "Pending");
    assert_eq!(rights(&fixture).await, with_fields(least, theirs));
    fixture.operator.stop().await;
}

#[tokio::test]
async fn a_restricted_namespace_accepts_the_pods_once_a_user_is_set() {
    let fixture = Fixture::new().await;
    let restricted = json!({"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}});
    let namespaces: Api<Namespace> = Api::all(fixture.test.client());
    namespaces.patch(fixture.test.name(), &PatchParams::default(), &Patch::Merge(restricted)).await.unwrap();
    let try_pod = async || {
        let mut pod = stateful_set(&fixture).await["spec"]["template"].clone();
        pod["metadata"]["name"] = json!("emb-0");
        let pod: Pod = serde_json::from_value(pod).unwrap();
        let dry_run = PostParams { dry_run: true, ..PostParams::default() };
        let made = fixture.test.api::<Pod>().create(&dry_run, &pod).await;
        made.map(drop).map_err(|error| error.to_string())
    };
    fixture.create(kind(), "emb", json!({"port": 80})).await;
    fixture.settle_any(kind(), "emb").await;
    let rejected = try_pod().await.unwrap_err();
    assert!(rejected.contains("runAsNonRoot"), "{rejected}");
    assert!(!rejected.contains("capabilities") && !rejected.contains("seccomp"), "{rejected}");

    let user =
        json!({"spec": {"securityContext": {"runAsNonRoot": true, "runAsUser": 1000, "fsGroup": 1000}}});
    fixture.patch_any(kind(), "emb", json!({"spec": {"podTemplateSpec": user}})).await;
    fixture.settle_any(kind(), "emb").await;
    assert_eq!(try_pod().await, Ok(()));
    fixture.operator.stop().await;
}

#[tokio::test]
async fn pods_of_a_toolhive_server_keep_their_permissions_until_its_finalizer_is_removed() {
    let fixture = Fixture::new().await.stopped().await;
    fixture.create(kind(), "emb", json!({})).await;
    let finalizer = "embeddingserver.toolhive.stacklok.dev/finalizer";
    fixture.patch_any(kind(), "emb", json!({"metadata": {"finalizers": [finalizer]}})).await;
    let fixture = fixture.restart().await;
    fixture.settle_any(kind(), "emb").await;
    assert_eq!(rights(&fixture).await, Value::Null);
    fixture.patch_any(kind(), "emb", json!({"spec": {"image": "registry.example/tei:2"}})).await;
    fixture.settle_any(kind(), "emb").await;
    assert_eq!(rights(&fixture).await, Value::Null);

    fixture.patch_any(kind(), "emb", json!({"metadata": {"finalizers": null}})).await;
    let restricted = |object: &Value| {
        let pods = &object["spec"]["template"]["spec"];
        pods["containers"][0]["securityContext"]["allowPrivilegeEscalation"] == false
    };
    fixture.until_any(StatefulSets::kind(), "emb", "restricted", restricted).await;
    fixture.operator.stop().await;
}
