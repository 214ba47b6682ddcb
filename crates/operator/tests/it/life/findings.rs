//! Each thing that can be wrong with an MCPRemoteProxy: it is told by its condition and by one event, what runs is left as
//! it is, and all is well again once it is mended.

use std::collections::BTreeMap;

use k8s_openapi::api::events::v1::Event;
use kube::{api::ListParams, core::DynamicObject};
use serde_json::{Value, json};
use skep_api::kinds::MCPRemoteProxy;
use skep_operator::watched::{Deployments, RemoteProxies};
use skep_testkit::fixtures::TestRemoteProxy;
use skep_world::Watched;

use super::mistakes::{AUTH, Mend, Row, create_bad_ones, of_advice, of_references, of_the_configuration};
use crate::{
    fixture::{Fixture, conditions},
    references::create_references,
};

/// What a proxy is like at one time.
struct Seen {
    proxy: DynamicObject,
    deployment: DynamicObject,
}

impl Seen {
    fn told(&self) -> BTreeMap<String, (String, String)> {
        conditions(&self.proxy)
    }
}

fn name(number: usize) -> String {
    format!("p-{number}")
}

/// Waits until the operator has nothing more to do, and looks at every proxy.
async fn look(fixture: &Fixture, count: usize) -> Vec<Seen> {
    let mut seen = Vec::new();
    for number in 0..count {
        let name = name(number);
        let current = |object: &DynamicObject| {
            object.data["status"]["observedGeneration"].as_i64() == object.metadata.generation
        };
        fixture.until_object(RemoteProxies::KIND, &name, "reported on", current).await;
    }
    fixture.settle_any(RemoteProxies::KIND, &name(0)).await;
    for number in 0..count {
        let name = name(number);
        seen.push(Seen {
            proxy: fixture.object(RemoteProxies::KIND, &name).await.unwrap(),
            deployment: fixture.object(Deployments::KIND, &name).await.unwrap(),
        });
    }
    seen
}

/// The warnings about each proxy, as reason and note.
async fn warnings(fixture: &Fixture, of: &str) -> Vec<(String, String)> {
    let events = fixture.test.api::<Event>().list(&ListParams::default()).await.unwrap();
    let about =
        |event: &Event| event.regarding.as_ref().and_then(|regarding| regarding.name.as_deref()) == Some(of);
    let warnings =
        events.items.into_iter().filter(|event| event.type_.as_deref() == Some("Warning") && about(event));
    warnings.map(|event| (event.reason.unwrap_or_default(), event.note.unwrap_or_default())).collect()
}

/// The patch that takes back what was set.
fn taken_back(wrong: &Value) -> Value {
    let fields = wrong.as_object().unwrap().keys().map(|field| match field.as_str() {
        "remoteUrl" => (field.clone(), json!("https://mcp.example")),
        _ => (field.clone(), Value::Null),
    });
    json!({"spec": fields.collect::<serde_json::Map<_, _>>()})
}

#[tokio::test]
async fn whatever_is_wrong_is_told_once_and_leaves_what_runs_alone_until_it_is_mended() {
    let fixture = Fixture::new().await;
    create_references(&fixture).await;
    create_bad_ones(&fixture).await;
    let rows: Vec<Row> =
        of_the_configuration().into_iter().chain(of_references()).chain(of_advice()).collect();
    for number in 0..rows.len() {
        fixture.test.create_object(&MCPRemoteProxy::test(&name(number))).await;
    }
    let before = look(&fixture, rows.len()).await;

    for (number, row) in rows.iter().enumerate() {
        fixture.patch_any(RemoteProxies::KIND, &name(number), json!({"spec": row.wrong})).await;
    }
    let wrong = look(&fixture, rows.len()).await;
    for (number, row) in rows.iter().enumerate() {
        let (seen, what) = (&wrong[number], &row.wrong);
        for (type_, status, reason) in &row.told {
            let told = seen.told();
            assert_eq!(told.get(*type_), Some(&((*status).into(), (*reason).into())), "{what}: {told:#?}");
        }
        let told = warnings(&fixture, &name(number)).await;
        let status = &seen.proxy.data["status"];
        let Some(event) = row.event else {
            assert_eq!((&status["phase"], told.len()), (&json!("Pending"), 0), "{what} does not matter");
            continue;
        };
        assert_eq!(status["phase"], "Failed", "{what}");
        let note = format!("{}; what runs goes on as it is", status["message"].as_str().unwrap());
        assert_eq!(told, [(event.to_owned(), note)], "{what} is told once");
        assert_eq!(
            seen.deployment.metadata.resource_version, before[number].deployment.metadata.resource_version,
            "{what} leaves what runs alone"
        );
    }

    for (number, row) in rows.iter().enumerate() {
        match &row.mend {
            Mend::TakeBack => {
                fixture.patch_any(RemoteProxies::KIND, &name(number), taken_back(&row.wrong)).await;
            }
            Mend::Create(kind, object) => drop(fixture.create_any(*kind, object).await),
        }
    }
    let mended = look(&fixture, rows.len()).await;
    for (number, row) in rows.iter().enumerate() {
        let (seen, what) = (&mended[number], &row.wrong);
        assert_eq!(seen.proxy.data["status"]["phase"], "Pending", "{what}: {:#}", seen.proxy.data["status"]);
        let told = warnings(&fixture, &name(number)).await;
        assert_eq!(told.len(), usize::from(row.event.is_some()), "{what} is not told again: {told:#?}");
        let told = seen.told();
        match &row.mend {
            Mend::TakeBack => {
                assert_eq!(told, before[number].told(), "{what}: no trace is left");
                assert_eq!(seen.deployment.data["spec"], before[number].deployment.data["spec"], "{what}");
            }
            Mend::Create(..) => {
                for (type_, _, _) in &row.told {
                    let now = told.get(*type_).map(|(status, _)| status.as_str());
                    assert!(now == Some("True") || (*type_ == AUTH.0 && now.is_none()), "{what}: {told:#?}");
                }
            }
        }
    }
    fixture.operator.stop().await;
}
