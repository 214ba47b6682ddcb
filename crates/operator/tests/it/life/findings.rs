//! Each mistake in an object: its condition and one event report it, running pods are left alone, and the conditions
//! recover once it is fixed.

use crate::kinds::{RemoteProxies, Servers, VirtualServers};
use skep_operator::resources::Deployments;
use std::collections::BTreeMap;

use k8s_openapi::api::events::v1::Event;
use kube::core::DynamicObject;
use serde_json::{Map, Value, json};
use skep_converge::Kind;
use skep_world::Watched;

use super::{
    mistakes,
    rows::{AUTH, Fix, Row},
    server_mistakes, virtual_mistakes,
};
use crate::{
    fixture::{Fixture, conditions},
    references::create_references,
};

/// The state of an object at one time.
struct Seen {
    object: DynamicObject,
    deployment: DynamicObject,
}

impl Seen {
    fn reported(&self) -> BTreeMap<String, (String, String)> {
        conditions(&self.object)
    }
}

fn name(number: usize) -> String {
    format!("p-{number}")
}

/// Waits until the operator is idle, and reads every object.
async fn look(fixture: &Fixture, kind: Kind, count: usize) -> Vec<Seen> {
    let mut seen = Vec::new();
    for number in 0..count {
        let name = name(number);
        let current = |object: &DynamicObject| {
            object.data["status"]["observedGeneration"].as_i64() == object.metadata.generation
        };
        fixture.until_object(kind, &name, "reported on", current).await;
    }
    fixture.settle_any(kind, &name(0)).await;
    for number in 0..count {
        let name = name(number);
        seen.push(Seen {
            object: fixture.object(kind, &name).await.unwrap(),
            deployment: fixture.object(Deployments::kind(), &name).await.unwrap(),
        });
    }
    seen
}

/// The warnings about an object, as reason and note.
async fn warnings(fixture: &Fixture, of: &str) -> Vec<(String, String)> {
    let about =
        |event: &Event| event.regarding.as_ref().and_then(|regarding| regarding.name.as_deref()) == Some(of);
    let is_warning = |event: &Event| event.type_.as_deref() == Some("Warning");
    let warnings = fixture.published().await.into_iter().filter(|event| is_warning(event) && about(event));
    warnings.map(|event| (event.reason.unwrap_or_default(), event.note.unwrap_or_default())).collect()
}

/// What a Deployment runs. The pods of an MCPServer have the generation of its spec, and the checksum of a file with it.
fn pods(deployment: &DynamicObject) -> Value {
    let mut spec = deployment.data["spec"].clone();
    let annotations = spec["template"]["metadata"]["annotations"].as_object_mut();
    if let Some(annotations) = annotations
        && annotations.remove("toolhive.stacklok.dev/mcpserver-generation").is_some()
    {
        annotations.remove("toolhive.stacklok.dev/runconfig-checksum");
    }
    spec
}

/// The merge patch that reverts what was set in the spec.
fn taken_back(wrong: &Value, spec: &Value) -> Value {
    let Value::Object(fields) = wrong else { return spec.clone() };
    let fields = fields.iter().map(|(field, wrong)| {
        let before = spec.get(field).map(|before| taken_back(wrong, before));
        (field.clone(), before.unwrap_or_default())
    });
    Value::Object(fields.collect::<Map<_, _>>())
}

/// Makes each mistake in a separate object with a valid spec, and fixes it.
async fn try_mistakes(fixture: &Fixture, kind: Kind, spec: &Value, rows: &[Row]) {
    for number in 0..rows.len() {
        fixture.create(kind, &name(number), spec.clone()).await;
    }
    let before = look(fixture, kind, rows.len()).await;

    for (number, row) in rows.iter().enumerate() {
        fixture.patch_any(kind, &name(number), json!({"spec": row.wrong})).await;
    }
    let wrong = look(fixture, kind, rows.len()).await;
    for (number, row) in rows.iter().enumerate() {
        let (seen, what) = (&wrong[number], &row.wrong);
        for (type_, status, reason) in &row.reported {
            let reported = seen.reported();
            assert_eq!(
                reported.get(*type_),
                Some(&((*status).into(), (*reason).into())),
                "{what}: {reported:#?}"
            );
        }
        let reported = warnings(fixture, &name(number)).await;
        let status = &seen.object.data["status"];
        let Some(event) = row.event else {
            assert_eq!((&status["phase"], reported.len()), (&json!("Pending"), 0), "{what} does not matter");
            continue;
        };
        assert_eq!(status["phase"], row.phase, "{what}");
        let [(reason, note)] = reported.as_slice() else {
            panic!("{what} is published {} times", reported.len())
        };
        assert_eq!(reason, event, "{what}");
        let message = status["message"].as_str().unwrap();
        assert!(
            note.starts_with(message) && note.ends_with("; existing pods keep running"),
            "{what}: {note}"
        );
        assert_eq!(
            seen.deployment.metadata.resource_version, before[number].deployment.metadata.resource_version,
            "{what} leaves what runs alone"
        );
    }

    for (number, row) in rows.iter().enumerate() {
        match &row.fix {
            Fix::Revert => {
                let spec = taken_back(&row.wrong, spec);
                fixture.patch_any(kind, &name(number), json!({"spec": spec})).await;
            }
            Fix::Create(kind, object) => drop(fixture.create_any(*kind, object).await),
        }
    }
    let fixed = look(fixture, kind, rows.len()).await;
    for (number, row) in rows.iter().enumerate() {
        let (seen, what) = (&fixed[number], &row.wrong);
        let status = &seen.object.data["status"];
        assert_eq!(status["phase"], "Pending", "{what}: {status:#}");
        let reported = warnings(fixture, &name(number)).await;
        assert_eq!(
            reported.len(),
            usize::from(row.event.is_some()),
            "{what} is not reported again: {reported:#?}"
        );
        let reported = seen.reported();
        match &row.fix {
            Fix::Revert => {
                assert_eq!(reported, before[number].reported(), "{what}: no trace is left");
                assert_eq!(pods(&seen.deployment), pods(&before[number].deployment), "{what}");
            }
            Fix::Create(..) => {
                for (type_, _, _) in &row.reported {
                    let now = reported.get(*type_).map(|(status, _)| status.as_str());
                    assert!(
                        now == Some("True") || (*type_ == AUTH.0 && now.is_none()),
                        "{what}: {reported:#?}"
                    );
                }
            }
        }
    }
}

#[tokio::test]
async fn each_mistake_in_a_server_is_reported_once_and_leaves_running_pods_alone() {
    let fixture = Fixture::new().await;
    mistakes::create_bad_ones(&fixture).await;
    server_mistakes::create_bad_ones(&fixture).await;
    let spec = json!({"image": "registry.example/mcp:1", "transport": "streamable-http"});
    try_mistakes(&fixture, Servers::kind(), &spec, &server_mistakes::of_the_spec()).await;
    fixture.operator.stop().await;
}

#[tokio::test]
async fn each_mistake_in_a_remote_proxy_is_reported_once_and_leaves_running_pods_alone() {
    let fixture = Fixture::new().await;
    create_references(&fixture).await;
    mistakes::create_bad_ones(&fixture).await;
    let mut rows = mistakes::of_the_configuration();
    rows.extend(mistakes::of_references());
    rows.extend(mistakes::of_advice());
    try_mistakes(&fixture, RemoteProxies::kind(), &json!({"remoteUrl": "https://mcp.example"}), &rows).await;
    fixture.operator.stop().await;
}

#[tokio::test]
async fn each_mistake_in_a_virtual_server_is_reported_once_and_leaves_running_pods_alone() {
    let fixture = Fixture::new().await;
    create_references(&fixture).await;
    mistakes::create_bad_ones(&fixture).await;
    virtual_mistakes::create_bad_ones(&fixture).await;
    let mut rows = virtual_mistakes::of_the_spec();
    rows.extend(virtual_mistakes::of_authentication());
    rows.extend(virtual_mistakes::of_references());
    rows.extend(virtual_mistakes::of_advice());
    let spec = json!({"groupRef": {"name": "group"}, "incomingAuth": {"type": "anonymous"}});
    try_mistakes(&fixture, VirtualServers::kind(), &spec, &rows).await;
    fixture.operator.stop().await;
}
