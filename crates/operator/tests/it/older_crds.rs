//! CRDs that lack fields: ToolHive's, or those of an older version. The operator leaves these fields out until they exist.

use std::{collections::BTreeMap, fs, time::Duration};

use http::Request;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api,
    api::{DeleteParams, Patch, PatchParams},
    core::DynamicObject,
};
use serde_json::{Value, json};
use skep_api::{
    crd::{self, crds},
    kinds::MCPServer,
};
use skep_converge::Kind;
use skep_operator::{
    plan::plan,
    reconcile::Verdict,
    run::{self, schemas::described},
    settings::Settings,
};
use skep_testkit::{ControlPlane, Namespace, fixtures::TestServer, free_port, repository, until_within};
use skep_world::Watched;
use tokio::{sync::watch, task::JoinHandle};

use crate::{
    fixture::{Fixture, conditions, options},
    kinds::{VirtualServers, all_kinds},
    observe::until_counted,
};

/// What every status has: it is what tests wait for.
const KEPT: [&str; 3] = ["conditions", "observedGeneration", "phase"];

/// The CRDs with no other status fields than these, and without the scale subresource.
fn older() -> Vec<Value> {
    let mut all: Vec<Value> = crds().unwrap().iter().map(|crd| crd::to_json(crd).unwrap()).collect();
    for version in all.iter_mut().flat_map(|crd| crd["spec"]["versions"].as_array_mut().unwrap()) {
        version["subresources"].as_object_mut().unwrap().remove("scale");
        let status = &mut version["schema"]["openAPIV3Schema"]["properties"]["status"];
        status["properties"].as_object_mut().unwrap().retain(|name, _| KEPT.contains(&name.as_str()));
    }
    all
}

/// Installs CRDs, and waits until the API server publishes their schemas.
async fn install(test: &Namespace, crds: &[Value], has_urls: bool) {
    let api: Api<CustomResourceDefinition> = Api::all(test.client());
    for crd in crds {
        let params = PatchParams::apply("skep-testkit").force();
        api.patch(crd["metadata"]["name"].as_str().unwrap(), &params, &Patch::Apply(crd)).await.unwrap();
    }
    let read = async |path: &str| {
        test.client().request::<Value>(Request::get(path).body(Vec::new()).unwrap()).await.ok()
    };
    let is_published = async || {
        // The index follows later than the documents.
        let index = read("/openapi/v3").await.unwrap();
        let document = &index["paths"]["apis/toolhive.stacklok.dev/v1beta1"]["serverRelativeURL"];
        let Some(published) = read(document.as_str().unwrap()).await else { return false };
        let schemas = published["components"]["schemas"].as_object().unwrap().values();
        let statuses = schemas.filter_map(|schema| schema["properties"].get("status"));
        let with_urls = statuses.filter(|status| status["properties"].get("url").is_some()).count();
        (with_urls > 0) == has_urls
    };
    until_within(Duration::from_secs(60), "the schemas are published", is_published).await;
}

/// One object of each kind, with the fewest fields.
fn specimen(kind: Kind) -> Value {
    let folder = repository("crates/api/tests/it/specimens").join(kind.kind);
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let minimal = files.iter().find(|file| file.ends_with("minimal.yaml")).unwrap_or(&files[0]);
    let mut object: Value = serde_saphyr::from_str(&fs::read_to_string(minimal).unwrap()).unwrap();
    object["metadata"] = json!({"name": "one"});
    object
}

fn backends() -> Value {
    json!([{"name": "a", "status": "ready"}, {"name": "b", "status": "unavailable"}])
}

/// What the pods of a virtual server and ToolHive's operator report, in one write of the whole.
fn reported_before() -> Value {
    let condition = |type_: &str| {
        let time = "2026-01-01T00:00:00Z";
        json!({"type": type_, "status": "True", "reason": "Old", "message": "theirs", "lastTransitionTime": time})
    };
    json!({
        "phase": "Ready", "discoveredBackends": backends(), "backendCount": 1, "observedGeneration": 1,
        "conditions": [condition("Ready"), condition("BackendsDiscovered"), condition("Forgotten")],
    })
}

#[tokio::test]
async fn every_kind_is_reported_on_with_older_crds_and_completed_when_newer_ones_arrive() {
    let plane = ControlPlane::start().await;
    let fixture = Fixture::on(plane.namespace().await, Settings::default()).await.stopped().await;
    for kind in all_kinds() {
        fixture.create_any(kind, &specimen(kind)).await;
    }
    // Before the CRDs are older: a reporter whose fields the operator must leave alone.
    fixture.report_as("vmcp", VirtualServers::kind(), "one", &reported_before()).await;
    let mut lacking = older();
    let virtual_server = lacking.iter_mut().find(|crd| crd["spec"]["names"]["kind"] == "VirtualMCPServer");
    for version in virtual_server.unwrap()["spec"]["versions"].as_array_mut().unwrap() {
        let ours =
            crds().unwrap().iter().find(|crd| crd.spec.names.kind == "VirtualMCPServer").cloned().unwrap();
        let ours = crd::to_json(&ours).unwrap();
        let of = |name: &str| {
            let schema = &ours["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"];
            schema["status"]["properties"][name].clone()
        };
        let status = &mut version["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"];
        for name in ["discoveredBackends", "backendCount"] {
            status[name] = of(name);
        }
    }
    install(&fixture.test, &lacking, false).await;

    observed_and_planned(&fixture).await;

    let recording = fixture.record();
    let fixture = fixture.restart().await;
    for kind in all_kinds() {
        let is_ours = |object: &DynamicObject| {
            object.data["status"]["observedGeneration"] == 1 && !conditions(object).contains_key("Forgotten")
        };
        fixture.until_object(kind, "one", "reported on", is_ours).await;
        let object = fixture.settle_any(kind, "one").await;
        assert_eq!(object.data["status"]["url"], Value::Null, "{}", kind.kind);
    }
    let rejected: Vec<String> = recording
        .requests()
        .await
        .iter()
        .filter(|request| request.code >= 500)
        .map(ToString::to_string)
        .collect();
    assert_eq!(rejected, [] as [&str; 0]);

    let ours: Vec<Value> = crds().unwrap().iter().map(|crd| crd::to_json(crd).unwrap()).collect();
    install(&fixture.test, &ours, true).await;
    for (kind, field) in completed() {
        let is_complete = |object: &DynamicObject| !object.data["status"][field].is_null();
        fixture.until_object(kind, "one", field, is_complete).await;
    }
    let hub = fixture.settle_any(VirtualServers::kind(), "one").await;
    assert_eq!(hub.data["status"]["discoveredBackends"], backends(), "what pods report stays theirs");
    assert_eq!(hub.data["status"]["backendCount"], 1);
    assert!(conditions(&hub).contains_key("BackendsDiscovered"));
    fixture.operator.stop().await;
}

/// A field that each kind's status has once it is declared.
fn completed() -> impl Iterator<Item = (Kind, &'static str)> {
    let field = |kind: &Kind| match kind.kind {
        "MCPServer" | "MCPRemoteProxy" | "VirtualMCPServer" => Some("url"),
        "EmbeddingServer" | "MCPRegistry" => Some("message"),
        config if config.ends_with("Config") && config != "MCPTelemetryConfig" => Some("configHash"),
        _ => None,
    };
    all_kinds().into_iter().filter_map(move |kind| Some((kind, field(&kind)?)))
}

/// An observing operator, with its metrics at this port.
fn observe(fixture: &Fixture, metrics: u16) -> (watch::Sender<bool>, JoinHandle<()>) {
    let mut options = options(vec![fixture.test.name().to_owned()], Settings::default());
    options.observe = true;
    options.metrics = ([127, 0, 0, 1], metrics).into();
    let (stop, stopped) = watch::channel(false);
    let config = fixture.user.config();
    (stop, tokio::spawn(async move { run::run(config, options, stopped).await.expect("it runs") }))
}

/// A plan and an observing operator work, and name what is missing.
async fn observed_and_planned(fixture: &Fixture) {
    let namespaces = [fixture.test.name().to_owned()];
    let planned = plan(fixture.user.config(), &namespaces, Settings::default(), |_| true).await.unwrap();
    assert_eq!(planned.objects.len(), all_kinds().len());
    for (target, plan) in &planned.objects {
        let verdict = plan.as_ref().map(skep_operator::reconcile::Plan::verdict);
        assert!(!matches!(verdict, Err(_) | Ok(Verdict::Unreadable)), "{}: {verdict:?}", target.kind.kind);
    }
    let described: BTreeMap<String, String> = described(&planned.undeclared)
        .iter()
        .filter_map(|text| text.split_once(": "))
        .map(|(kind, fields)| (kind.to_owned(), fields.to_owned()))
        .collect();
    assert_eq!(described["MCPGroup"].split(", ").count(), 6, "{described:#?}");
    assert_eq!(described["MCPToolConfig"], "status.configHash, status.referencingWorkloads");

    let metrics = free_port();
    let (stop, observer) = observe(fixture, metrics);
    until_counted(metrics, r#"skep_operator_undeclared_status_fields{kind="MCPToolConfig"} 2"#).await;
    until_counted(metrics, r#"skep_operator_observed_objects{kind="MCPServer",verdict="change"} 1"#).await;
    until_counted(metrics, r#"skep_operator_observed_objects{kind="MCPToolConfig",verdict="status"} 1"#)
        .await;
    stop.send_replace(true);
    observer.await.unwrap();
}

/// Kinds whose CRDs are not installed: one of configurations, and one of workloads, which may refer to configurations.
const ABSENT: [&str; 2] = ["MCPWebhookConfig", "VirtualMCPServer"];

fn kind_named(name: &str) -> Kind {
    all_kinds().into_iter().find(|kind| kind.kind == name).unwrap()
}

/// Waits until the API server serves the absent kinds, or until it does not.
async fn until_served(test: &Namespace, is_served: bool) {
    for kind in ABSENT.map(kind_named) {
        let is_so = async || {
            let list = Request::get(kind.path(Some(test.name()))).body(Vec::new()).unwrap();
            test.client().request::<Value>(list).await.is_ok() == is_served
        };
        until_within(Duration::from_secs(60), kind.kind, is_so).await;
    }
}

async fn remove(test: &Namespace) {
    let api: Api<CustomResourceDefinition> = Api::all(test.client());
    for kind in ABSENT.map(kind_named) {
        let name = format!("{}.{}", kind.plural, kind.group);
        api.delete(&name, &DeleteParams::default()).await.unwrap();
    }
    until_served(test, false).await;
}

#[tokio::test]
async fn a_crd_that_is_missing_stops_nothing_else_and_its_objects_are_found_when_it_arrives() {
    let plane = ControlPlane::start().await;
    let test = plane.namespace().await;
    remove(&test).await;
    let fixture = Fixture::on(test, Settings::default()).await;
    fixture.settled(&MCPServer::test("fetch")).await;
    // Nothing refers to it: the kinds of all referrers are listed before it is deleted.
    let oidc = kind_named("MCPOIDCConfig");
    fixture.create_any(oidc, &specimen(oidc)).await;
    fixture.settle_any(oidc, "one").await;
    fixture.delete(oidc, "one").await;
    fixture.until_any(oidc, "one", "deleted", Value::is_null).await;

    let namespaces = [fixture.test.name().to_owned()];
    let planned = plan(fixture.user.config(), &namespaces, Settings::default(), |_| true).await.unwrap();
    assert_eq!(planned.unserved, ABSENT.map(kind_named));
    assert_eq!(planned.objects.len(), 1);
    let metrics = free_port();
    let (stop, observer) = observe(&fixture, metrics);
    for kind in ABSENT {
        until_counted(metrics, &format!("skep_operator_unserved_kinds{{kind=\"{kind}\"}} 1")).await;
    }

    let ours: Vec<Value> = crds().unwrap().iter().map(|crd| crd::to_json(crd).unwrap()).collect();
    install(&fixture.test, &ours, true).await;
    until_served(&fixture.test, true).await;
    for kind in ABSENT.map(kind_named) {
        fixture.create_any(kind, &specimen(kind)).await;
        let is_reported = |object: &DynamicObject| object.data["status"]["observedGeneration"] == 1;
        fixture.until_object(kind, "one", "reported on", is_reported).await;
    }
    let planned = plan(fixture.user.config(), &namespaces, Settings::default(), |_| true).await.unwrap();
    assert_eq!(planned.unserved, []);
    stop.send_replace(true);
    observer.await.unwrap();
    fixture.operator.stop().await;
}
