//! A plan predicts the result of a write, and writes nothing.

use k8s_openapi::api::core::v1::Secret;
use serde_json::{Value, json};
use skep_converge::{Applied, Child, Meta, Mode, Observed, Planned, Restores, Write, Writer, prune};

use crate::fixture::{DEPLOYMENTS, Fixture, MANAGER};

/// The plan for the child, checked against the write that follows.
async fn planned(fixture: &Fixture, child: &Child) -> Applied {
    let planner = fixture.test.admin("planner");
    let recording = planner.record();
    let writer = Writer::new(planner.client(), MANAGER, Mode::Plan, Restores::default());
    let live = fixture.live().await;
    let (meta, observed) = (Meta::of(&live.metadata), Observed::of(&live, MANAGER));
    let planned = writer.apply(child, Some((&meta, &observed)), &fixture.owner_uid()).await.unwrap();
    for request in recording.requests().await.iter().filter(|request| request.is_write()) {
        assert!(request.query.contains("dryRun=All"), "{request} {}", request.query);
    }
    let after = fixture.live().await;
    assert_eq!(after.metadata.resource_version, live.metadata.resource_version, "nothing is written");
    planned
}

fn described(applied: Applied) -> (String, Vec<String>, bool) {
    let planned = applied.planned().expect("something is planned");
    let changes = planned.changes.iter().map(ToString::to_string).collect();
    (planned.to_string(), changes, planned.rolls_pods())
}

async fn create_as(fixture: &Fixture, manager: &str, body: &Value) {
    let path = format!("{}?fieldManager={manager}", DEPLOYMENTS.path(Some(fixture.test.name())));
    let request = http::Request::post(path).body(serde_json::to_vec(body).unwrap()).unwrap();
    fixture.test.client().request::<Value>(request).await.unwrap();
}

#[tokio::test]
async fn a_converged_object_needs_no_plan_and_a_change_is_reported_field_by_field() {
    let fixture = Fixture::new().await;
    fixture.create(&fixture.deployment(|_| {})).await;
    assert_eq!(planned(&fixture, &fixture.deployment(|_| {})).await, Applied::Unchanged);
    let changed = fixture.deployment(|body| {
        body["metadata"]["labels"] = json!({"other": "label"});
        body["spec"]["template"]["spec"]["containers"][0]["image"] = json!("registry.example/web:2");
    });
    let expected = [
        r#"metadata.labels.app: - "web""#,
        r#"metadata.labels.other: + "label""#,
        r#"spec.template.spec.containers[web].image: "registry.example/web:1" -> "registry.example/web:2""#,
    ];
    let (what, changes, rolls) = described(planned(&fixture, &changed).await);
    assert_eq!((what.as_str(), rolls), ("change Deployment web", true));
    assert_eq!(changes, expected);
    let relabelled = fixture.deployment(|body| body["metadata"]["labels"]["more"] = json!("1"));
    let (_, changes, rolls) = described(planned(&fixture, &relabelled).await);
    assert_eq!((changes, rolls), (vec![r#"metadata.labels.more: + "1""#.to_owned()], false));
}

#[tokio::test]
async fn a_takeover_is_planned_with_what_is_dropped_and_without_what_is_the_default() {
    let fixture = Fixture::new().await;
    let child = fixture.deployment(|_| {});
    create_as(&fixture, "other-operator", child.body()).await;
    let (what, changes, rolls) = described(planned(&fixture, &child).await);
    assert_eq!((what.as_str(), rolls), ("take-over Deployment web (from other-operator)", false));
    assert_eq!(changes, [] as [&str; 0]);

    let smaller = fixture.deployment(|body| {
        body["metadata"]["labels"] = json!({"other": "label"});
        body["spec"]["template"]["metadata"]["annotations"] = Value::Null;
        body["spec"]["template"]["spec"]["containers"][0]["env"] = json!([{"name": "A", "value": "1"}]);
        body["spec"]["template"]["spec"]["containers"][0]["resources"] = Value::Null;
    });
    let before = fixture.live().await;
    let (what, changes, rolls) = described(planned(&fixture, &smaller).await);
    assert_eq!((what.as_str(), rolls), ("change Deployment web (from other-operator)", true));
    let expected = [
        r#"metadata.labels.app: - "web""#,
        r#"metadata.labels.other: + "label""#,
        r#"spec.template.metadata.annotations: - {"checksum":"1"}"#,
        r#"spec.template.spec.containers[web].env[EMPTY]: - {"name":"EMPTY"}"#,
        r#"spec.template.spec.containers[web].resources.limits: - {"cpu":"500m","memory":"1Gi"}"#,
    ];
    assert_eq!(changes, expected);

    // And so it happens.
    fixture.converge(&smaller).await;
    let after = fixture.live().await;
    let mut foretold = before.data["spec"].clone();
    foretold["template"]["metadata"].as_object_mut().unwrap().remove("annotations");
    foretold["template"]["spec"]["containers"][0]["env"] = json!([{"name": "A", "value": "1"}]);
    foretold["template"]["spec"]["containers"][0]["resources"] = json!({});
    assert_eq!(after.data["spec"], foretold);
    assert_eq!(json!(after.metadata.labels), json!({"other": "label"}));
    assert_eq!(planned(&fixture, &smaller).await, Applied::Unchanged);
}

#[tokio::test]
async fn fields_of_later_writers_stay_theirs_in_a_planned_takeover() {
    let fixture = Fixture::new().await;
    let child = fixture.deployment(|body| body["spec"]["replicas"] = Value::Null);
    let mut made = child.body().clone();
    made["metadata"]["annotations"] = json!({"note": "theirs"});
    create_as(&fixture, "other-operator", &made).await;
    let note = json!({"metadata": {"annotations": {"note": "a person's"}}});
    fixture.foreign_patch("application/merge-patch+json", "kubectl-edit", &note).await;
    let (what, changes, _) = described(planned(&fixture, &child).await);
    assert_eq!(what, "take-over Deployment web (from other-operator)");
    assert_eq!(changes, [] as [&str; 0]);
    fixture.converge(&child).await;
    assert_eq!(json!(fixture.live().await.metadata.annotations)["note"], "a person's");
}

#[tokio::test]
async fn creations_and_deletions_are_dry_runs() {
    let fixture = Fixture::new().await;
    let planner = fixture.test.admin("planner");
    let writer = Writer::new(planner.client(), MANAGER, Mode::Plan, Restores::default());
    let uid = fixture.owner_uid();
    let creation = writer.apply(&fixture.deployment(|_| {}), None, &uid).await.unwrap();
    let is = |planned: Planned| (planned.write, planned.kind.kind, planned.name);
    assert_eq!(creation.planned().map(is), Some((Write::Create, "Deployment", "web".into())));

    let metadata = json!({"name": "key", "namespace": fixture.test.name()});
    let secret = serde_json::from_value(json!({"metadata": metadata, "type": "Opaque"})).unwrap();
    let secret = writer.apply(&Child::random_secret(&secret, "value").unwrap(), None, &uid).await.unwrap();
    let secret = secret.planned().unwrap();
    assert_eq!((secret.write, secret.changes.as_slice()), (Write::Create, &[][..]));
    assert!(fixture.test.api::<Secret>().get_opt("key").await.unwrap().is_none());

    fixture.create(&fixture.deployment(|_| {})).await;
    let seen = Meta::of(&fixture.live().await.metadata);
    let deletion = prune(&writer, DEPLOYMENTS, fixture.test.name(), "web", &seen).await.unwrap();
    assert_eq!(deletion.map(is), Some((Write::Delete, "Deployment", "web".into())));
    assert_eq!(Meta::of(&fixture.live().await.metadata), seen, "it is still there");
}
