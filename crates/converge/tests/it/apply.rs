//! Own fields are corrected by one write; the fields of others are left alone; nothing is sent when nothing differs.

use k8s_openapi::api::core::v1::{Secret, Service};
use kube::core::DynamicObject;
use serde_json::{Value, json};
use skep_converge::{Applied, Child, Error, Kind, Meta, Observed, prune};

use crate::fixture::{DEPLOYMENTS, Fixture, MANAGER};

const STRATEGIC: &str = "application/strategic-merge-patch+json";
const JSON_PATCH: &str = "application/json-patch+json";

#[tokio::test]
async fn a_converged_object_is_not_written() {
    let fixture = Fixture::new().await;
    let child = fixture.deployment(|_| {});
    fixture.create(&child).await;
    let before = fixture.live().await.metadata.resource_version;
    for _ in 0..3 {
        assert_eq!(fixture.converge(&child).await, Applied::Unchanged);
    }
    assert_eq!(fixture.recording.writes().await, ["patch deployments web"]);
    assert_eq!(fixture.live().await.metadata.resource_version, before);
}

#[tokio::test]
async fn each_own_field_that_was_changed_or_removed_by_hand_is_restored_by_one_write() {
    let rows = [
        (
            "an image",
            json!({"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "other"}),
        ),
        (
            "an env value",
            json!({"op": "replace", "path": "/spec/template/spec/containers/0/env/0/value", "value": "2"}),
        ),
        ("an env variable", json!({"op": "remove", "path": "/spec/template/spec/containers/0/env/0"})),
        (
            "an annotation",
            json!({"op": "replace", "path": "/spec/template/metadata/annotations/checksum", "value": "9"}),
        ),
        (
            "an annotation, removed",
            json!({"op": "remove", "path": "/spec/template/metadata/annotations/checksum"}),
        ),
        ("a label, removed", json!({"op": "remove", "path": "/metadata/labels/app"})),
        (
            "a limit",
            json!({"op": "replace", "path": "/spec/template/spec/containers/0/resources/limits/cpu", "value": "1"}),
        ),
        ("the owner, removed", json!({"op": "remove", "path": "/metadata/ownerReferences"})),
    ];
    for (what, change) in rows {
        let fixture = Fixture::new().await;
        let child = fixture.deployment(|_| {});
        fixture.create(&child).await;
        let good = fixture.live().await;
        assert_eq!(fixture.converge(&child).await, Applied::Unchanged, "{what}: no drift to start with");
        fixture.foreign_patch(JSON_PATCH, "kubectl-edit", &json!([change])).await;
        assert!(matches!(fixture.converge(&child).await, Applied::Written(_)), "{what} is noticed");
        assert_eq!(fixture.live().await.data["spec"], good.data["spec"], "{what} is put back");
        assert_eq!(fixture.live().await.metadata.labels, good.metadata.labels, "{what} is put back");
        assert_eq!(
            fixture.live().await.metadata.owner_references,
            good.metadata.owner_references,
            "{what} is put back"
        );
        assert_eq!(fixture.converge(&child).await, Applied::Unchanged, "{what}: settled again");
        assert_eq!(fixture.recording.writes().await.len(), 2, "{what}: created and put back");
    }
}

#[tokio::test]
async fn the_fields_of_others_are_left_alone() {
    let rows = [
        ("an autoscaler", "/scale", "application/merge-patch+json", json!({"spec": {"replicas": 5}})),
        (
            "kubectl rollout restart",
            "",
            STRATEGIC,
            json!({"spec": {"template": {"metadata": {"annotations": {"kubectl.kubernetes.io/restartedAt": "now"}}}}}),
        ),
        (
            "an injector",
            "",
            STRATEGIC,
            json!({"spec": {"template": {
                "metadata": {"labels": {"injected": "yes"}},
                "spec": {"containers": [{"name": "sidecar", "image": "registry.example/sidecar:1"}]},
            }}}),
        ),
        ("an annotator", "", STRATEGIC, json!({"metadata": {"annotations": {"cloud.example/id": "7"}}})),
        ("a finalizer", "", STRATEGIC, json!({"metadata": {"finalizers": ["example.com/hold"]}})),
    ];
    for (who, subresource, content, patch) in rows {
        let fixture = Fixture::new().await;
        let child = fixture.deployment(|_| {});
        fixture.create(&child).await;
        fixture.patch_path(subresource, content, "another-writer", &patch).await;
        let theirs = fixture.live().await;
        assert_eq!(fixture.converge(&child).await, Applied::Unchanged, "{who} is no drift");
        let changed = fixture
            .deployment(|body| body["spec"]["template"]["metadata"]["annotations"]["checksum"] = json!("2"));
        assert!(matches!(fixture.converge(&changed).await, Applied::Written(_)));
        let mut expected = theirs.data["spec"].clone();
        expected["template"]["metadata"]["annotations"]["checksum"] = json!("2");
        assert_eq!(fixture.live().await.data["spec"], expected, "{who} survives a write of ours");
        assert_eq!(fixture.live().await.metadata.annotations, theirs.metadata.annotations, "{who}");
        assert_eq!(fixture.live().await.metadata.finalizers, theirs.metadata.finalizers, "{who}");
    }
}

#[tokio::test]
async fn fields_dropped_from_the_desired_state_are_removed_from_the_object() {
    let fixture = Fixture::new().await;
    fixture.create(&fixture.deployment(|_| {})).await;
    let smaller = fixture.deployment(|body| {
        body["spec"]["template"]["metadata"]["annotations"] = Value::Null;
        body["spec"]["template"]["spec"]["containers"][0]["env"] = json!([{"name": "A", "value": "1"}]);
        body["spec"]["template"]["spec"]["containers"][0]["resources"] = Value::Null;
    });
    assert!(matches!(fixture.converge(&smaller).await, Applied::Written(_)));
    let live = fixture.live().await;
    let template = &live.data["spec"]["template"];
    assert_eq!(template["metadata"]["annotations"], Value::Null);
    assert_eq!(template["spec"]["containers"][0]["env"], json!([{"name": "A", "value": "1"}]));
    assert_eq!(template["spec"]["containers"][0]["resources"], json!({}));
    assert_eq!(fixture.converge(&smaller).await, Applied::Unchanged);
}

#[tokio::test]
async fn an_object_that_another_controls_is_not_touched() {
    let fixture = Fixture::new().await;
    fixture.create(&fixture.deployment(|_| {})).await;
    let live = fixture.live().await;
    let (meta, observed) = (Meta::of(&live.metadata), Observed::of(&live, MANAGER));
    let child = fixture.deployment(|body| body["metadata"]["labels"]["app"] = json!("mine"));
    let error = fixture.writer.apply(&child, Some((&meta, &observed)), "another-uid").await.unwrap_err();
    assert!(matches!(error, Error::Foreign { .. }));
    assert_eq!(
        error.to_string(),
        "Deployment web is controlled by ConfigMap owner: rename one of the two, or delete that Deployment"
    );
    assert_eq!(fixture.live().await.metadata.resource_version, live.metadata.resource_version);
}

#[tokio::test]
async fn an_object_is_deleted_only_if_it_has_not_changed() {
    let fixture = Fixture::new().await;
    fixture.create(&fixture.deployment(|_| {})).await;
    let seen = Meta::of(&fixture.live().await.metadata);
    fixture
        .foreign_patch(STRATEGIC, "another-writer", &json!({"metadata": {"annotations": {"a": "b"}}}))
        .await;
    let namespace = fixture.test.name();
    let error = prune(&fixture.writer, DEPLOYMENTS, namespace, "web", &seen).await.unwrap_err();
    assert!(error.is_stale(), "{error}");
    let seen = Meta::of(&fixture.live().await.metadata);
    prune(&fixture.writer, DEPLOYMENTS, namespace, "web", &seen).await.unwrap();
    prune(&fixture.writer, DEPLOYMENTS, namespace, "web", &seen)
        .await
        .expect("deleting a deleted object is no error");
}

#[tokio::test]
async fn a_secret_with_a_random_value_is_created_once_for_one_owner() {
    let fixture = Fixture::new().await;
    let secrets = fixture.test.api::<Secret>();
    let owner = |uid: &str| json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid, "controller": true}]);
    let secret = |uid: &str| {
        let metadata =
            json!({"name": "key", "namespace": fixture.test.name(), "ownerReferences": owner(uid)});
        let secret = serde_json::from_value(json!({"metadata": metadata, "type": "Opaque"})).unwrap();
        Child::random_secret(&secret, "value").unwrap()
    };
    let child = secret(&fixture.owner_uid());
    assert_eq!(child.body()["data"], Value::Null, "the value is made when it is written");
    assert!(matches!(
        fixture.writer.apply(&child, None, &fixture.owner_uid()).await.unwrap(),
        Applied::Written(_)
    ));
    let made = secrets.get("key").await.unwrap();
    assert_eq!(made.data.as_ref().unwrap()["value"].0.len(), 44, "32 bytes in Base64");

    // A watch that is behind does not know of it yet.
    assert_eq!(fixture.writer.apply(&child, None, &fixture.owner_uid()).await.unwrap(), Applied::Unchanged);
    let live: DynamicObject = serde_json::from_value(serde_json::to_value(&made).unwrap()).unwrap();
    let (meta, observed) = (Meta::of(&live.metadata), Observed::of(&live, MANAGER));
    let known = Some((&meta, &observed));
    let again = fixture.writer.apply(&child, known, &fixture.owner_uid()).await.unwrap();
    assert_eq!(again, Applied::Unchanged);
    let foreign = fixture.writer.apply(&secret("another"), known, "another").await;
    assert!(matches!(foreign, Err(Error::Foreign { .. })), "{foreign:?}");
    assert_eq!(secrets.get("key").await.unwrap().data, made.data);
}

/// Ports are replaced only if they are why an apply fails: others may have changed them.
#[tokio::test]
async fn a_service_that_is_rejected_for_its_labels_keeps_its_ports() {
    let fixture = Fixture::new().await;
    let service = |label: &str| {
        let port = json!({"name": "http", "port": 80, "protocol": "TCP"});
        let body = json!({"metadata": {"labels": {"app": label}}, "spec": {"ports": [port]}});
        Child::from_value(Kind::of::<Service>(), fixture.test.name().into(), "web".into(), body)
    };
    fixture.create(&service("web")).await;
    let live: DynamicObject =
        serde_json::from_value(json!(fixture.test.api::<Service>().get("web").await.unwrap())).unwrap();
    let (meta, observed) = (Meta::of(&live.metadata), Observed::of(&live, MANAGER));

    let rejected = service("not a label");
    let applied = fixture.writer.apply(&rejected, Some((&meta, &observed)), &fixture.owner_uid()).await;
    let error = applied.unwrap_err();
    assert!(error.is_invalid() && error.to_string().contains("metadata.labels"), "{error}");
    let writes = ["patch services web", "patch services web"];
    assert_eq!(fixture.recording.writes().await, writes, "the creation and the rejected apply");
}
