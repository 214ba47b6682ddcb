//! A plan for a live cluster says what the operator would do, and does nothing.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use skep_api::kinds::{MCPGroup, MCPOIDCConfig, MCPServer, MCPToolConfig, VirtualMCPServer};
use skep_converge::Kind;
use skep_operator::{
    plan::{Plan, PlanError, Verdict, plan},
    settings::Settings,
    watched::{Deployments, Groups, OidcConfigs, Secrets, Servers, Services, ToolConfigs, VirtualServers},
};
use skep_testkit::{
    Namespace,
    audit::Recording,
    fixtures::{TestGroup, TestOidcConfig, TestServer, TestToolConfig},
};
use skep_world::Watched;

use crate::{
    fixture::{CHILDREN, Fixture},
    virtual_server::object,
};

/// What objects are planned for, and what they have beside the usual children.
const KINDS: [Kind; 6] =
    [Servers::KIND, VirtualServers::KIND, Groups::KIND, ToolConfigs::KIND, OidcConfigs::KIND, Secrets::KIND];

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

/// Whatever was asked for could not change anything.
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
    let planned = plan(fixture.user.config(), &namespaces, settings, |_| true).await.unwrap();
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
    plans(fixture, &[&KINDS[..], &CHILDREN].concat(), Settings::default()).await
}

/// What would be done, and each change.
fn told(plan: &Plan) -> Vec<String> {
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
    assert!(plans.values().all(|plan| plan.writes.is_empty() && plan.notices.is_empty()));
}

#[tokio::test]
async fn a_new_server_would_be_given_its_children_and_nothing_secret_is_told() {
    let fixture = Fixture::new().await.stopped().await;
    fixture.test.create_object(&MCPGroup::test("all")).await;
    let spec = json!({"groupRef": {"name": "all"}, "incomingAuth": {"type": "anonymous"}});
    fixture.test.create_object(&object::<VirtualMCPServer>("hub", spec)).await;
    let plans = planned(&fixture).await;
    let plan = &plans["VirtualMCPServer hub"];
    assert_eq!((plan.verdict(), plan.rolls_pods()), (Verdict::Change, false));
    let told = told(plan);
    for wanted in ["create Deployment hub", "create Secret hub-hmac-secret", "create RoleBinding hub-vmcp"] {
        assert!(told.iter().any(|line| line == wanted), "no {wanted} in {told:#?}");
    }
    let secret = plan.writes.iter().find(|planned| planned.kind == Secrets::KIND).unwrap();
    assert_eq!(secret.changes, []);
}

#[tokio::test]
async fn a_changed_spec_is_told_with_its_fields_and_why_and_then_it_happens() {
    let fixture = Fixture::new().await;
    fixture.settled(&MCPServer::test("fetch").streamable_http()).await;
    let fixture = fixture.stopped().await;
    fixture
        .patch("fetch", json!({"spec": {"image": "registry.example/mcp:2", "serviceAccount": "mine"}}))
        .await;
    let plans = planned(&fixture).await;
    let plan = &plans["MCPServer fetch"];
    assert_eq!((plan.verdict(), plan.rolls_pods()), (Verdict::Change, true));
    let told = told(plan);
    let image =
        |line: &String| line.contains("spec.template.spec.containers[toolhive].args") && line.contains(":2");
    assert!(told.contains(&"change Deployment fetch".to_owned()) && told.iter().any(image), "{told:#?}");
    assert!(told.contains(&"delete ServiceAccount fetch-sa".to_owned()), "{told:#?}");
    let note = "the proxy's Deployment was updated: the spec is now of generation 2";
    assert_eq!(plan.notices.iter().map(|notice| notice.note.as_str()).collect::<Vec<_>>(), [note]);

    let foretold =
        plan.writes.iter().find(|planned| planned.kind == Deployments::KIND).unwrap().changes.clone();
    let fixture = fixture.restart().await;
    fixture.settle("fetch").await;
    let live = json!(fixture.deployment("fetch").await);
    let args = live["spec"]["template"]["spec"]["containers"][0]["args"].as_array().unwrap();
    let foretold = foretold.iter().filter(|change| change.path.contains("containers[toolhive].args"));
    let foretold: Vec<_> = foretold.filter_map(|change| change.after.as_ref()).collect();
    assert_eq!(foretold.len(), 2, "{foretold:?}");
    assert!(foretold.iter().all(|argument| args.contains(argument)), "{foretold:?} in {args:?}");
    assert_eq!(planned(&fixture.stopped().await).await["MCPServer fetch"].verdict(), Verdict::Settled);
}

#[tokio::test]
async fn what_is_missing_would_be_made_and_what_was_changed_by_hand_put_back() {
    let fixture = Fixture::new().await;
    fixture.settled(&MCPServer::test("fetch").streamable_http()).await;
    let fixture = fixture.stopped().await;
    fixture.delete(Services::KIND, "mcp-fetch-proxy").await;
    let by_hand = json!({"metadata": {"labels": {"app": "other"}}});
    fixture.patch_any(Deployments::KIND, "fetch", by_hand).await;
    let plans = planned(&fixture).await;
    let told = told(&plans["MCPServer fetch"]);
    assert_eq!(
        told,
        [
            "change Deployment fetch",
            r#"  metadata.labels.app: "other" -> "mcpserver""#,
            "create Service mcp-fetch-proxy",
        ]
    );
    assert!(!plans["MCPServer fetch"].rolls_pods());
}

#[tokio::test]
async fn finalizers_statuses_and_what_keeps_an_object_back_are_part_of_it() {
    let fixture = Fixture::new().await.stopped().await;
    fixture.test.create_object(&MCPToolConfig::test("tools").offering("read")).await;
    fixture.test.create_object(&MCPServer::test("fetch").streamable_http().with_oidc("missing")).await;
    let plans = planned(&fixture).await;
    let tools = &plans["MCPToolConfig tools"];
    assert_eq!(tools.verdict(), Verdict::Status);
    let lines = told(tools);
    let finalizer = r#"  metadata.finalizers: + ["toolhive.stacklok.dev/toolconfig-finalizer"]"#;
    assert_eq!(lines[..2], ["mark MCPToolConfig tools", finalizer], "{lines:#?}");
    assert!(lines.contains(&"status MCPToolConfig tools".into()), "{lines:#?}");

    let server = &plans["MCPServer fetch"];
    assert_eq!(server.verdict(), Verdict::Blocked);
    assert!(server.problem.as_ref().unwrap().contains("missing"), "{:?}", server.problem);
    assert_eq!(server.notices.len(), 1);
}

#[tokio::test]
async fn an_object_that_is_being_deleted_would_be_let_go_with_what_is_left_of_it() {
    let fixture = Fixture::new().await;
    fixture.settled(&MCPServer::test("fetch").streamable_http()).await;
    let fixture = fixture.stopped().await;
    fixture.delete(Servers::KIND, "fetch").await;
    let plans = planned(&fixture).await;
    let told = told(&plans["MCPServer fetch"]);
    let expected = [
        "delete RoleBinding fetch-proxy-runner",
        "delete Deployment fetch",
        "delete ConfigMap fetch-runconfig",
        "mark MCPServer fetch",
        r#"  metadata.finalizers: - ["mcpserver.toolhive.stacklok.dev/finalizer"]"#,
    ];
    assert_eq!(told, expected);
}

async fn planned_as(
    test: &Namespace,
    rules: Vec<k8s_openapi::api::rbac::v1::PolicyRule>,
) -> Result<String, PlanError> {
    let user = test.user("somebody");
    test.grant(&user, rules).await;
    let plans = plan(user.config(), &[test.name().to_owned()], Settings::default(), |_| true).await?;
    let failures = plans.into_iter().filter_map(|(_, plan)| plan.err());
    Ok(failures.map(|failure| failure.to_string()).collect())
}

#[tokio::test]
async fn who_may_not_read_or_try_is_told_what_is_missing() {
    let fixture = Fixture::new().await.stopped().await;
    fixture.test.create_object(&MCPServer::test("fetch").streamable_http()).await;
    let user = format!("{}-somebody", fixture.test.name());
    let refused = planned_as(&fixture.test, Vec::new()).await.unwrap_err().to_string();
    assert!(refused.contains("is forbidden") && refused.contains(&user), "{refused}");
    assert_eq!(refused.lines().count(), 1, "{refused}");

    let read =
        serde_json::from_value(json!({"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list"]}))
            .unwrap();
    let other = skep_testkit::namespace().await;
    other.create_object(&MCPServer::test("fetch").streamable_http()).await;
    let refused = planned_as(&other, vec![read]).await.unwrap();
    assert!(
        refused.contains("cannot add a finalizer to MCPServer") && refused.contains("is forbidden"),
        "{refused}"
    );
}
