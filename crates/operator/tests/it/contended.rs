//! A writer that changes fields of the operator back at once does not start a loop, and delays nothing else.

use std::{sync::Arc, time::Duration};

use futures::{StreamExt, TryStreamExt};
use kube::{
    Api,
    api::{DeleteParams, Patch, PatchParams},
    core::{ApiResource, DynamicObject},
    runtime::{WatchStreamExt, watcher},
};
use serde_json::{Value, json};
use skep_api::kinds::MCPServer;
use skep_converge::Kind;
use skep_operator::resources::{ConfigMaps, Deployments, RoleBindings, Roles, ServiceAccounts, Services};
use skep_testkit::{Namespace, audit::Request, fixtures::TestServer};
use skep_world::Watched;
use tokio::task::JoinSet;

use crate::{fixture::Fixture, kinds::Servers};

/// How long the hostile controller writes.
const WAR: Duration = Duration::from_secs(60);
/// How often the operator may write a child meanwhile.
const WRITES: usize = 12;

/// What a hostile controller does whenever the operator has written the object.
#[derive(Clone)]
enum Attack {
    /// It writes the same each time.
    Set(Value),
    /// It writes another value each time.
    Vary(fn(usize) -> Value),
    Delete,
}

#[derive(Clone)]
struct Hostile {
    kind: Kind,
    name: &'static str,
    subresource: Option<&'static str>,
    attack: Attack,
}

impl Hostile {
    fn new(kind: Kind, name: &'static str, attack: Attack) -> Self {
        Self { kind, name, subresource: None, attack }
    }

    fn body(&self, fields: &Value) -> Value {
        let kind = self.kind;
        let mut body =
            json!({"apiVersion": kind.api_version(), "kind": kind.kind, "metadata": {"name": self.name}});
        for (field, value) in fields.as_object().unwrap() {
            body[field] = value.clone();
        }
        body
    }

    async fn attack(&self, api: &Api<DynamicObject>, times: usize) -> Option<String> {
        let fields = match &self.attack {
            Attack::Set(fields) => fields.clone(),
            Attack::Vary(fields) => fields(times),
            Attack::Delete => {
                // It may be deleted already.
                api.delete(self.name, &DeleteParams::default()).await.ok();
                return None;
            }
        };
        let (params, patch) = (PatchParams::apply("hostile").force(), Patch::Apply(self.body(&fields)));
        let written = match self.subresource {
            Some(_) => api.patch_status(self.name, &params, &patch).await,
            None => api.patch(self.name, &params, &patch).await,
        };
        written.expect("the hostile controller writes").metadata.resource_version
    }

    /// Attacks whenever the object changes, at once, but not because of its own write.
    async fn run(self, api: Api<DynamicObject>) {
        let config = watcher::Config::default().fields(&format!("metadata.name={}", self.name));
        let mut events = watcher(api.clone(), config).default_backoff().applied_objects().boxed();
        let (mut own, mut times) = (None, 0);
        while let Ok(Some(object)) = events.try_next().await {
            if object.metadata.resource_version != own {
                times += 1;
                own = self.attack(&api, times).await;
            }
        }
    }
}

fn image(image: &str) -> Value {
    json!({"spec": {"template": {"spec": {"containers": [{"name": "toolhive", "image": image}]}}}})
}

/// Controllers that want the children to be the same each time.
fn stubborn() -> Vec<Hostile> {
    let set = |kind, name, fields| Hostile::new(kind, name, Attack::Set(fields));
    vec![
        set(Deployments::kind(), "fetch", image("hostile")),
        set(Services::kind(), "mcp-fetch-proxy", json!({"spec": {"sessionAffinity": "None"}})),
        set(Roles::kind(), "fetch-proxy-runner", json!({"rules": []})),
        set(RoleBindings::kind(), "fetch-proxy-runner", json!({"subjects": []})),
        set(ConfigMaps::kind(), "fetch-runconfig", json!({"data": {"runconfig.json": "{}"}})),
    ]
}

/// Controllers that write a counter, or delete. One of them has a server for itself: the status reports the others.
fn restless() -> Vec<Hostile> {
    let vary = |kind, name, fields| Hostile::new(kind, name, Attack::Vary(fields));
    let status = vary(
        Servers::kind(),
        "reported",
        |times| json!({"status": {"url": format!("http://{times}.hostile")}}),
    );
    vec![
        Hostile { subresource: Some("status"), ..status },
        vary(Deployments::kind(), "fetch", |times| image(&format!("hostile:{times}"))),
        vary(
            ServiceAccounts::kind(),
            "fetch-proxy-runner",
            |times| json!({"imagePullSecrets": [{"name": format!("hostile-{times}")}]}),
        ),
        vary(
            ConfigMaps::kind(),
            "fetch-runconfig",
            |times| json!({"data": {"runconfig.json": times.to_string()}}),
        ),
        Hostile::new(Services::kind(), "mcp-fetch-proxy", Attack::Delete),
        Hostile::new(ServiceAccounts::kind(), "fetch-sa", Attack::Delete),
    ]
}

fn start(test: &Namespace, hostile: &[Hostile]) -> JoinSet<()> {
    let mut controllers = JoinSet::new();
    for one in hostile {
        let kind = one.kind;
        let resource = ApiResource {
            group: kind.group.into(),
            version: kind.version.into(),
            api_version: kind.api_version(),
            kind: kind.kind.into(),
            plural: kind.plural.into(),
        };
        let api = Api::namespaced_with(test.client(), test.name(), &resource);
        controllers.spawn(one.clone().run(api));
    }
    controllers
}

/// Each object is written again, and no more than a few times.
fn assert_few_writes(requests: &[Request], hostile: &[Hostile]) {
    for Hostile { kind, name, subresource, .. } in hostile {
        let is_one = |request: &&Request| {
            request.is_write()
                && request.resource == kind.plural
                && request.name == *name
                && request.subresource == subresource.unwrap_or_default()
        };
        let writes = requests.iter().filter(is_one).count();
        assert!((2..=WRITES).contains(&writes), "{writes} writes to {} {name}", kind.kind);
    }
}

/// The server with a change that is applied although other fields of the same object are contended.
async fn assert_others_converge(fixture: &Fixture) {
    fixture.patch("fetch", json!({"spec": {"image": "registry.example/mcp:2"}})).await;
    let is_new = |deployment: &Value| {
        let container = &deployment["spec"]["template"]["spec"]["containers"][0];
        container["args"]
            .as_array()
            .is_some_and(|args| args.iter().any(|arg| arg == "registry.example/mcp:2"))
    };
    fixture.until_any(Deployments::kind(), "fetch", "converged", is_new).await;
}

async fn until_contended(fixture: &Fixture, message: &str) {
    let is_contended = |object: &DynamicObject| {
        let all = object.data["status"]["conditions"].as_array().into_iter().flatten();
        let mut contended = all.filter(|one| one["type"] == "Contended");
        contended.any(|one| one["message"].as_str().is_some_and(|text| text.contains(message)))
    };
    fixture.until_object(Servers::kind(), "fetch", message, is_contended).await;
}

#[tokio::test]
async fn a_field_that_another_controller_changes_back_is_left_alone_and_all_others_converge() {
    let fixture = Arc::new(Fixture::new().await);
    let server = json!({"spec": {"sessionAffinity": "ClientIP"}});
    fixture.settled(&MCPServer::test("fetch").streamable_http()).await;
    fixture.patch("fetch", server).await;
    fixture.settle("fetch").await;

    let recording = fixture.record();
    let controllers = start(&fixture.test, &stubborn());
    until_contended(&fixture, "hostile changes").await;
    assert_others_converge(&fixture).await;

    tokio::time::sleep(WAR).await;
    let requests = recording.requests().await;
    assert_few_writes(&requests, &stubborn());
    let statuses = requests.iter().filter(|request| request.subresource == "status").count();
    assert!(statuses <= WRITES, "{statuses} writes to the status");
    let events = fixture.events().await;
    let contended: Vec<_> = events.iter().filter(|(reason, _)| reason == "Contended").collect();
    assert_eq!(contended.len(), 1, "{events:#?}");

    drop(controllers);
    Arc::into_inner(fixture).unwrap().operator.stop().await;
}

#[tokio::test]
async fn nor_is_there_a_loop_with_controllers_that_write_another_value_each_time_or_delete() {
    let fixture = Arc::new(Fixture::new().await);
    let mut server = MCPServer::test("fetch").streamable_http();
    let pull = json!({"proxyDeployment": {"imagePullSecrets": [{"name": "pull"}]}});
    server.spec.resource_overrides = serde_json::from_value(pull).unwrap();
    fixture.settled(&server).await;
    fixture.settled(&MCPServer::test("reported")).await;

    let recording = fixture.record();
    let controllers = start(&fixture.test, &restless());
    until_contended(&fixture, "Deployment fetch: hostile changes").await;
    assert_others_converge(&fixture).await;

    tokio::time::sleep(WAR).await;
    assert_few_writes(&recording.requests().await, &restless());

    drop(controllers);
    Arc::into_inner(fixture).unwrap().operator.stop().await;
}
