//! Objects that another program created are taken over once.

use std::sync::Arc;

use serde_json::{Value, json};
use skep_converge::{Applied, Observed};

use crate::fixture::{DEPLOYMENTS, Fixture, MANAGER, interrupted_writer};

/// Creates the Deployment as another program would, by a plain write.
async fn create_as(fixture: &Fixture, manager: &str, body: &Value) {
    let path = format!("{}?fieldManager={manager}", DEPLOYMENTS.path(Some(fixture.test.name())));
    let request = http::Request::post(path).body(serde_json::to_vec(body).unwrap()).unwrap();
    fixture.test.client().request::<Value>(request).await.unwrap();
}

#[tokio::test]
async fn an_object_of_another_program_is_taken_over_without_a_change_to_its_pods() {
    let fixture = Fixture::new().await;
    let child = fixture.deployment(|_| {});
    create_as(&fixture, "other-operator", child.body()).await;
    let before = fixture.live().await;
    assert!(Observed::of(&before, MANAGER).takeover);

    assert!(matches!(fixture.converge(&child).await, Applied::TakenOver(_)));
    let after = fixture.live().await;
    assert_eq!(after.data["spec"], before.data["spec"]);
    assert_eq!(after.metadata.generation, before.metadata.generation, "no pod rolls");
    assert_eq!(fixture.converge(&child).await, Applied::Unchanged);
    let managers: Vec<String> =
        after.metadata.managed_fields.unwrap().into_iter().filter_map(|e| e.manager).collect();
    assert_eq!(managers, [MANAGER]);

    let smaller = fixture.deployment(|body| body["metadata"]["labels"] = json!({"other": "label"}));
    fixture.converge(&smaller).await;
    assert_eq!(fixture.live().await.metadata.labels.unwrap().len(), 1, "what is dropped later goes");
}

#[tokio::test]
async fn a_takeover_that_replaces_pods_is_a_write() {
    let fixture = Fixture::new().await;
    create_as(&fixture, "other-operator", fixture.deployment(|_| {}).body()).await;
    let label = |body: &mut Value| body["spec"]["template"]["metadata"]["labels"]["new"] = json!("label");
    assert!(matches!(fixture.converge(&fixture.deployment(label)).await, Applied::Written(_)));
}

#[tokio::test]
async fn fields_of_later_writers_stay_theirs() {
    let fixture = Fixture::new().await;
    let child = fixture.deployment(|_| {});
    create_as(&fixture, "other-operator", child.body()).await;
    let restart = json!({"spec": {"template": {"metadata": {"annotations": {"kubectl.kubernetes.io/restartedAt": "now"}}}}});
    fixture.foreign_patch("application/strategic-merge-patch+json", "kubectl-rollout", &restart).await;
    let scale = json!({"spec": {"replicas": 4}});
    fixture.patch_path("/scale", "application/merge-patch+json", "autoscaler", &scale).await;
    fixture.converge(&child).await;
    let live = fixture.live().await;
    assert_eq!(live.data["spec"]["replicas"], 4);
    assert_eq!(
        live.data["spec"]["template"]["metadata"]["annotations"]["kubectl.kubernetes.io/restartedAt"],
        "now"
    );
    assert_eq!(fixture.converge(&child).await, Applied::Unchanged);
}

#[tokio::test]
async fn a_takeover_with_a_concurrent_write_is_a_conflict_and_its_retry_loses_nothing() {
    let fixture = Arc::new(Fixture::new().await);
    let child = fixture.deployment(|_| {});
    create_as(&fixture, "other-operator", child.body()).await;
    let other = fixture.clone();
    let writer = interrupted_writer(&fixture.test.admin("interrupted"), async move {
        let label = json!({"metadata": {"labels": {"team": "theirs"}}});
        other.foreign_patch("application/merge-patch+json", "kubectl-label", &label).await;
    });

    let error = fixture.converge_by(&writer, &child).await.unwrap_err();
    assert!(error.is_stale(), "{error}");
    assert!(Observed::of(&fixture.live().await, MANAGER).takeover, "nothing is taken over yet");
    assert!(matches!(fixture.converge_by(&writer, &child).await.unwrap(), Applied::TakenOver(_)));
    let metadata = fixture.live().await.metadata;
    assert_eq!(metadata.labels.unwrap()["team"], "theirs");
    let mut managers: Vec<_> =
        metadata.managed_fields.unwrap().into_iter().filter_map(|entry| entry.manager).collect();
    managers.sort_unstable();
    assert_eq!(managers, ["kubectl-label", MANAGER]);
}
