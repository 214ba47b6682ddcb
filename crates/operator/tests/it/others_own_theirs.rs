//! The operator never overwrites what others own.

use crate::kinds::{RemoteProxies, Servers};
use serde_json::{Value, json};
use skep_api::kinds::{MCPRemoteProxy, MCPServer};
use skep_converge::Kind;
use skep_operator::resources::{ConfigMaps, Deployments, ServiceAccounts, Services};
use skep_testkit::fixtures::{TestRemoteProxy, TestServer};
use skep_world::Watched;

use crate::{fixture::Fixture, references::PERMIT};

const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

/// A write of another program to an object of ours.
struct Foreign {
    who: &'static str,
    kind: Kind,
    name: String,
    subresource: &'static str,
    content: &'static str,
    patch: Value,
    /// Its path in the object.
    stays: fn(&Value) -> bool,
}

impl Foreign {
    async fn write(&self, fixture: &Fixture) {
        let Self { who, kind, name, subresource, content, .. } = self;
        let path = format!("{}/{name}{subresource}?fieldManager={who}", kind.path(Some(fixture.test.name())));
        let mut patch = self.patch.clone();
        if *content == APPLY {
            patch["apiVersion"] = json!(kind.api_version());
            patch["kind"] = json!(kind.kind);
        }
        let request = http::Request::patch(path).header("content-type", *content);
        let request = request.body(patch.to_string().into_bytes()).unwrap();
        let response = fixture.test.client().request::<Value>(request).await;
        response.unwrap_or_else(|error| panic!("{who}: {error}"));
    }

    async fn assert_untouched(&self, fixture: &Fixture) {
        let live = json!(fixture.object(self.kind, &self.name).await.unwrap());
        assert!(
            (self.stays)(&live),
            "what {} wrote is removed from {} {}: {live:#}",
            self.who,
            self.kind.kind,
            self.name
        );
    }
}

fn has_finalizer(object: &Value) -> bool {
    object["metadata"]["finalizers"].as_array().is_some_and(|all| all.contains(&json!("example.com/theirs")))
}

/// The table of what others write to an object and its children.
fn foreign(kind: Kind, name: &str, service: &str, account: &str) -> Vec<Foreign> {
    let row = |who, kind, name: &str, content, patch, stays| Foreign {
        who,
        kind,
        name: name.into(),
        subresource: "",
        content,
        patch,
        stays,
    };
    let finalizer = json!({"metadata": {"finalizers": ["example.com/theirs"]}});
    let restart = json!({"metadata": {"annotations": {"kubectl.kubernetes.io/restartedAt": "now"}}});
    let injected = json!({
        "metadata": {"labels": {"mesh.example/injected": "yes"}},
        "spec": {
            "containers": [{"name": "mesh", "image": "registry.example/mesh:1"}],
            "volumes": [{"name": "mesh", "emptyDir": {}}],
        },
    });
    vec![
        Foreign {
            subresource: "/scale",
            ..row("autoscaler", Deployments::kind(), name, MERGE, json!({"spec": {"replicas": 5}}), |live| {
                live["spec"]["replicas"] == 5
            })
        },
        row(
            "kubectl-rollout",
            Deployments::kind(),
            name,
            STRATEGIC,
            json!({"spec": {"template": restart}}),
            |live| {
                live["spec"]["template"]["metadata"]["annotations"]["kubectl.kubernetes.io/restartedAt"]
                    == "now"
            },
        ),
        row("injector", Deployments::kind(), name, APPLY, json!({"spec": {"template": injected}}), |live| {
            let template = &live["spec"]["template"];
            let named = |list: &Value| list.as_array().unwrap().iter().any(|item| item["name"] == "mesh");
            template["metadata"]["labels"]["mesh.example/injected"] == "yes"
                && named(&template["spec"]["containers"])
                && named(&template["spec"]["volumes"])
        }),
        row("protector", Deployments::kind(), name, MERGE, finalizer.clone(), has_finalizer),
        row(
            "cloud",
            Services::kind(),
            service,
            MERGE,
            json!({"metadata": {"annotations": {"cloud.example/lb": "1"}}}),
            |live| live["metadata"]["annotations"]["cloud.example/lb"] == "1",
        ),
        row("cloud", Services::kind(), service, MERGE, finalizer.clone(), has_finalizer),
        row(
            "cloud",
            ServiceAccounts::kind(),
            account,
            MERGE,
            json!({"metadata": {"annotations": {"cloud.example/role": "r"}}}),
            |live| live["metadata"]["annotations"]["cloud.example/role"] == "r",
        ),
        row(
            "backup",
            ConfigMaps::kind(),
            &format!("{name}-runconfig"),
            MERGE,
            json!({"metadata": {"labels": {"backup": "yes"}}}),
            |live| live["metadata"]["labels"]["backup"] == "yes",
        ),
        row(
            "gitops",
            kind,
            name,
            MERGE,
            json!({"metadata": {"annotations": {"gitops.example/id": "1"}}}),
            |live| live["metadata"]["annotations"]["gitops.example/id"] == "1",
        ),
        row("protector", kind, name, MERGE, finalizers(kind), has_finalizer),
    ]
}

/// A merge patch replaces the list, so it must include the existing items.
fn finalizers(kind: Kind) -> Value {
    let ours = (kind == Servers::kind()).then_some("mcpserver.toolhive.stacklok.dev/finalizer");
    let all: Vec<&str> = ours.into_iter().chain(["example.com/theirs"]).collect();
    json!({"metadata": {"finalizers": all}})
}

async fn settle_both(fixture: &Fixture) {
    fixture.settle("fetch").await;
    fixture.settle_any(RemoteProxies::kind(), "elsewhere").await;
}

#[tokio::test]
async fn fields_of_others_cause_no_write_and_survive_ours() {
    let fixture = Fixture::new().await;
    fixture.test.create_object(&MCPServer::test("fetch").streamable_http()).await;
    fixture.test.create_object(&MCPRemoteProxy::test("elsewhere")).await;
    settle_both(&fixture).await;
    let mut rows = foreign(Servers::kind(), "fetch", "mcp-fetch-proxy", "fetch-proxy-runner");
    let account = "elsewhere-remote-proxy-runner";
    rows.extend(foreign(RemoteProxies::kind(), "elsewhere", "mcp-elsewhere-remote-proxy", account));

    let recording = fixture.record();
    for row in &rows {
        row.write(&fixture).await;
    }
    settle_both(&fixture).await;
    assert_eq!(recording.writes().await, [] as [&str; 0], "what others own is no drift");

    // Every child is written again.
    let change = json!({"spec": {"proxyPort": 9000, "resourceOverrides": {
        "proxyDeployment": {"imagePullSecrets": [{"name": "ours"}], "labels": {"ours": "1"}},
        "proxyService": {"labels": {"ours": "1"}},
    }}});
    fixture.patch("fetch", change.clone()).await;
    fixture.patch_any(RemoteProxies::kind(), "elsewhere", change).await;
    settle_both(&fixture).await;
    let written = recording.writes().await;
    for row in &rows {
        let what = format!("patch {} {}", row.kind.plural, row.name);
        assert!(
            row.kind.group.contains("toolhive") || written.contains(&what),
            "{what} is not among {written:#?}"
        );
        row.assert_untouched(&fixture).await;
    }
    fixture.operator.stop().await;
}

#[tokio::test]
async fn authz_config_that_another_controller_applies_is_never_cleared() {
    let fixture = Fixture::new().await;
    fixture.test.create_object(&MCPServer::test("fetch")).await;
    fixture.test.create_object(&MCPRemoteProxy::test("elsewhere")).await;
    settle_both(&fixture).await;
    let authz = json!({"type": "inline", "inline": {"policies": [PERMIT], "entitiesJson": "[]"}});
    for (kind, name) in [(Servers::kind(), "fetch"), (RemoteProxies::kind(), "elsewhere")] {
        let theirs = Foreign {
            who: "another-controller",
            kind,
            name: name.into(),
            subresource: "",
            content: APPLY,
            patch: json!({"spec": {"authzConfig": authz}}),
            stays: |live| live["spec"]["authzConfig"]["inline"]["policies"] == json!([PERMIT]),
        };
        theirs.write(&fixture).await;
        fixture.settle_any(kind, name).await;
        let policies = fixture.object(ConfigMaps::kind(), &format!("{name}-authz-inline")).await;
        assert!(policies.is_some(), "it has its effect");
        fixture.patch_any(kind, name, json!({"spec": {"audit": {"enabled": true}}})).await;
        let object = fixture.settle_any(kind, name).await;
        theirs.assert_untouched(&fixture).await;
        let entries = object.metadata.managed_fields.unwrap();
        let of_ours = entries.iter().filter(|entry| entry.manager.as_ref().unwrap().starts_with("skep-"));
        for entry in of_ours {
            let fields = &entry.fields_v1.as_ref().unwrap().0;
            assert_eq!(fields.get("f:spec"), None, "nothing of the spec is ours: {fields:#}");
        }
    }
    fixture.operator.stop().await;
}

#[tokio::test]
async fn the_custom_resource_is_only_ever_patched_with_what_changes() {
    let fixture = Fixture::new().await;
    let recording = fixture.record();
    fixture.test.create_object(&MCPServer::test("fetch")).await;
    fixture.test.create_object(&MCPRemoteProxy::test("elsewhere")).await;
    settle_both(&fixture).await;
    fixture.patch("fetch", json!({"spec": {"image": "registry.example/mcp:2"}})).await;
    fixture
        .patch_any(RemoteProxies::kind(), "elsewhere", json!({"spec": {"remoteUrl": "https://b.example"}}))
        .await;
    settle_both(&fixture).await;
    let requests = recording.requests().await;
    let writes = requests.iter().filter(|request| request.is_write());
    let on_owners: Vec<_> = writes
        .filter(|request| {
            [Servers::kind(), RemoteProxies::kind()].iter().any(|kind| kind.plural == request.resource)
        })
        .collect();
    assert!(on_owners.iter().all(|request| request.verb == "patch"), "no full PUT: {on_owners:#?}");
    let of_proxies = on_owners.iter().filter(|request| request.resource == RemoteProxies::kind().plural);
    assert!(
        of_proxies.clone().count() > 0 && of_proxies.clone().all(|request| request.subresource == "status")
    );
    for request in &on_owners {
        let body = request.body.clone().unwrap();
        match request.subresource.as_str() {
            "status" => {
                assert_eq!(body["spec"], Value::Null);
                assert_eq!(body["metadata"]["resourceVersion"], Value::Null, "status has no precondition");
            }
            _ => {
                let keys: Vec<&String> = body["metadata"].as_object().unwrap().keys().collect();
                assert_eq!(keys, ["finalizers", "resourceVersion"], "what changes, and the precondition");
                assert_eq!(body.as_object().unwrap().len(), 1);
            }
        }
    }
    fixture.operator.stop().await;
}
