//! A plan for a live cluster lists what the operator would do, and changes nothing.

use crate::kinds::{Groups, OidcConfigs, Servers, ToolConfigs, VirtualServers};
use skep_operator::resources::{Deployments, Secrets, Services};
use std::collections::BTreeMap;

use serde_json::{Value, json};
use skep_api::kinds::{MCPGroup, MCPOIDCConfig, MCPServer, MCPToolConfig, VirtualMCPServer};
use skep_converge::Kind;
use skep_operator::{
    plan::{PlanError, plan},
    reconcile::{Plan, Verdict},
    settings::Settings,
};
use skep_testkit::{
    Namespace,
    audit::Recording,
    fixtures::{TestGroup, TestOidcConfig, TestServer, TestToolConfig},
};
use skep_world::Watched;

use crate::{
    fixture::{Fixture, children},
    virtual_server::object,
};

/// The objects to plan for, and what they have besides the usual children.
fn kinds() -> [Kind; 6] {
    [
        Servers::kind(),
        VirtualServers::kind(),
        Groups::kind(),
        ToolConfigs::kind(),
        OidcConfigs::kind(),
        Secrets::kind(),
    ]
}

/// Every object of the namespace, with its state.
pub(crate) async fn states(fixture: &Fixture, kinds: &[Kind]) -> BTreeMap<String, Value> {
    let mut states = BTreeMap::new();
    for kind in kinds {
        for object in fixture.objects(*kind).await {
            let metadata = &object["metadata"];
            states.insert(format!("{} {}", kind.kind, metadata["name"]), metadata["resourceVersion"].clone());
        }
    }
    states
}

/// None of the requests can change anything.
pub(crate) async fn only_tried(recording: &Recording) {
    let requests = recording.requests().await;
    let writes: Vec<_> = requests.iter().filter(|request| request.is_write()).collect();
    for write in &writes {
        assert!(write.query.contains("dryRun=All"), "{write} {}", write.query);
        let is_tried = write.verb != "delete" || write.body.as_ref().unwrap()["dryRun"] == json!(["All"]);
        assert!(is_tried, "{write} {:?}", write.body);
    }
}

/// The plans by object. Nothing is written for them.
pub(crate) async fn plans(fixture: &Fixture, kinds: &[Kind], settings: Settings) -> BTreeMap<String, Plan> {
    let (before, recording) = (states(fixture, kinds).await, fixture.record());
    let namespaces = [fixture.test.name().to_owned()];
    let planned = plan(fixture.user.config(), &namespaces, settings, |_| true).await.unwrap().objects;
    only_tried(&recording).await;
    assert_eq!(states(fixture, kinds).await, before, "nothing is written");
    let named = planned.into_iter().map(|(target, plan)| {
        let object = format!("{} {}", target.kind.kind, target.name);
        let plan = plan.unwrap_or_else(|failure| panic!("{object}: {failure}"));
        (object, plan)
    });
    named.collect()
}

async fn planned(fixture: &Fixture) -> BTreeMap<String, Plan> {
    plans(fixture, &[&kinds()[..], &children()].concat(), Settings::default()).await
}

/// What would be done, and each change.
fn reported(plan: &Plan) -> Vec<String> {
    let lines = plan.writes.iter().flat_map(|planned| {
        let changes = planned.changes.iter().map(|change| format!("  {change}"));
        std::iter::once(planned.to_string()).chain(changes)
    });
    lines.collect()
}

#[tokio::test]
async fn a_settled_cluster_has_nothing_to_do() {
    let fixture = Fixture::new().await;
    fixture.test.create_object(&MCPOIDCConfig::test("company")).await;
    fixture.test.create_object(&MCPGroup::test("tools")).await;
    fixture.settled(&MCPServer::test("fetch").streamable_http().with_oidc("company")).await;
    let fixture = fixture.stopped().await;
    let plans = planned(&fixture).await;
    let verdicts: BTreeMap<&str, Verdict> =
        plans.iter().map(|(name, plan)| (name.as_str(), plan.verdict())).collect();
    let settled = ["MCPGroup tools", "MCPOIDCConfig company", "MCPServer fetch"];
    assert_eq!(verdicts, settled.map(|name| (name, Verdict::Settled)).into());
    assert!(plans.values().all(|plan| plan.writes.is_empty() && plan.events.is_empty()));
}

#[tokio::test]
async fn the_plan_of_a_new_server_lists_its_children_without_secrets() {
    let fixture = Fixture::new().await.stopped().await;
    fixture.test.create_object(&MCPGroup::test("all")).await;
    let spec = json!({"groupRef": {"name": "all"}, "incomingAuth": {"type": "anonymous"}});
    fixture.test.create_object(&object::<VirtualMCPServer>("hub", spec)).await;
    let plans = planned(&fixture).await;
    let plan = &plans["VirtualMCPServer hub"];
    assert_eq!((plan.verdict(), plan.rolls_pods()), (Verdict::Change, false));
    let reported = reported(plan);
    for expected in ["create Deployment hub", "create Secret hub-hmac-secret", "create RoleBinding hub-vmcp"]
    {
        assert!(reported.iter().any(|line| line == expected), "no {expected} in {reported:#?}");
    }
    let secret = plan.writes.iter().find(|planned| planned.kind == Secrets::kind()).unwrap();
    assert_eq!(secret.changes, []);
}

#[tokio::test]
async fn a_changed_spec_is_planned_with_its_fields_and_reason_and_then_applied() {
    let fixture = Fixture::new().await;
    fixture.settled(&MCPServer::test("fetch").streamable_http()).await;
    let fixture = fixture.stopped().await;
    fixture
        .patch("fetch", json!({"spec": {"image": "registry.example/mcp:2", "serviceAccount": "mine"}}))
        .await;
    let plans = planned(&fixture).await;
    let plan = &plans["MCPServer fetch"];
    assert_eq!((plan.verdict(), plan.rolls_pods()), (Verdict::Change, true));
    let reported = reported(plan);
    let image =
        |line: &String| line.contains("spec.template.spec.containers[toolhive].args") && line.contains(":2");
    assert!(
        reported.contains(&"change Deployment fetch".to_owned()) && reported.iter().any(image),
        "{reported:#?}"
    );
    assert!(reported.contains(&"delete ServiceAccount fetch-sa".to_owned()), "{reported:#?}");
    let note = "updated the proxy's Deployment: the spec has the new generation 2";
    assert_eq!(plan.events.iter().map(|event| event.note.as_str()).collect::<Vec<_>>(), [note]);

    let predicted =
        plan.writes.iter().find(|planned| planned.kind == Deployments::kind()).unwrap().changes.clone();
    let fixture = fixture.restart().await;
    fixture.settle("fetch").await;
    let live = json!(fixture.deployment("fetch").await);
    let args = live["spec"]["template"]["spec"]["containers"][0]["args"].as_array().unwrap();
    let predicted = predicted.iter().filter(|change| change.path.contains("containers[toolhive].args"));
    let predicted: Vec<_> = predicted.filter_map(|change| change.after.as_ref()).collect();
    assert_eq!(predicted.len(), 2, "{predicted:?}");
    assert!(predicted.iter().all(|argument| args.contains(argument)), "{predicted:?} in {args:?}");
    assert_eq!(planned(&fixture.stopped().await).await["MCPServer fetch"].verdict(), Verdict::Settled);
}

#[tokio::test]
async fn a_plan_recreates_missing_children_and_reverts_manual_changes() {
    let fixture = Fixture::new().await;
    fixture.settled(&MCPServer::test("fetch").streamable_http()).await;
    let fixture = fixture.stopped().await;
    fixture.delete(Services::kind(), "mcp-fetch-proxy").await;
    let by_hand = json!({"metadata": {"labels": {"app": "other"}}});
    fixture.patch_any(Deployments::kind(), "fetch", by_hand).await;
    let plans = planned(&fixture).await;
    let reported = reported(&plans["MCPServer fetch"]);
    assert_eq!(
        reported,
        [
            "change Deployment fetch",
            r#"  metadata.labels.app: "other" -> "mcpserver""#,
            "create Service mcp-fetch-proxy",
        ]
    );
    assert!(!plans["MCPServer fetch"].rolls_pods());
}

#[tokio::test]
async fn a_plan_includes_finalizers_statuses_and_deletion_blockers() {
    let fixture = Fixture::new().await.stopped().await;
    fixture.test.create_object(&MCPToolConfig::test("tools").offering("read")).await;
    fixture.test.create_object(&MCPServer::test("fetch").streamable_http().with_oidc("missing")).await;
    let plans = planned(&fixture).await;
    let tools = &plans["MCPToolConfig tools"];
    assert_eq!(tools.verdict(), Verdict::Status);
    let lines = reported(tools);
    let finalizer = r#"  metadata.finalizers: + ["toolhive.stacklok.dev/toolconfig-finalizer"]"#;
    assert_eq!(lines[..2], ["mark MCPToolConfig tools", finalizer], "{lines:#?}");
    assert!(lines.contains(&"status MCPToolConfig tools".into()), "{lines:#?}");

    let server = &plans["MCPServer fetch"];
    assert_eq!(server.verdict(), Verdict::Blocked);
    assert!(server.problem.as_ref().unwrap().contains("missing"), "{:?}", server.problem);
    assert_eq!(server.events.len(), 1);
}

#[tokio::test]
async fn the_plan_of_a_deleted_object_removes_its_finalizer_and_leftovers() {
    let fixture = Fixture::new().await;
    fixture.settled(&MCPServer::test("fetch").streamable_http()).await;
    let fixture = fixture.stopped().await;
    fixture.delete(Servers::kind(), "fetch").await;
    let plans = planned(&fixture).await;
    let reported = reported(&plans["MCPServer fetch"]);
    let expected = [
        "delete RoleBinding fetch-proxy-runner",
        "delete Deployment fetch",
        "delete ConfigMap fetch-runconfig",
        "mark MCPServer fetch",
        r#"  metadata.finalizers: - ["mcpserver.toolhive.stacklok.dev/finalizer"]"#,
    ];
    assert_eq!(reported, expected);
}

async fn planned_as(
    test: &Namespace,
    rules: Vec<k8s_openapi::api::rbac::v1::PolicyRule>,
) -> Result<String, PlanError> {
    let user = test.user("reader");
    test.grant(&user, rules).await;
    let plans = plan(user.config(), &[test.name().to_owned()], Settings::default(), |_| true).await?;
    let failures = plans.objects.into_iter().filter_map(|(_, plan)| plan.err());
    Ok(failures.map(|failure| failure.to_string()).collect())
}

#[tokio::test]
async fn missing_permissions_for_a_plan_are_reported() {
    let fixture = Fixture::new().await.stopped().await;
    fixture.test.create_object(&MCPServer::test("fetch").streamable_http()).await;
    let user = format!("{}-reader", fixture.test.name());
    let error = planned_as(&fixture.test, Vec::new()).await.unwrap_err().to_string();
    assert!(error.contains("is forbidden") && error.contains(&user), "{error}");
    assert_eq!(error.lines().count(), 1, "{error}");

    let read =
        serde_json::from_value(json!({"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list"]}))
            .unwrap();
    let other = skep_testkit::namespace().await;
    other.create_object(&MCPServer::test("fetch").streamable_http()).await;
    let error = planned_as(&other, vec![read]).await.unwrap();
    assert!(
        error.contains("cannot add a finalizer to MCPServer") && error.contains("is forbidden"),
        "{error}"
    );
}
