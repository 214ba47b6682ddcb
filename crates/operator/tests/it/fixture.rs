//! An operator in the test's own process, with one namespace.

use crate::kinds::Servers;
use skep_operator::resources::{ConfigMaps, Deployments, RoleBindings, Roles, ServiceAccounts, Services};
use std::{
    collections::BTreeMap,
    sync::{Arc, LazyLock},
    time::{Duration, Instant},
};

use k8s_openapi::api::{apps::v1::Deployment, events::v1::Event};
use kube::{
    Api,
    api::ListParams,
    core::{ApiResource, DynamicObject},
};
use regex::Regex;
use serde_json::{Value, json};
use skep_api::kinds::{MCPServer, MCPServerStatus};
use skep_converge::Kind;
use skep_operator::{
    permissions,
    run::{self, Options},
    settings::Settings,
};
use skep_testkit::{
    Handle, Namespace, PATIENCE, User,
    audit::{LastWrite, LastWrites, Recording},
};
use skep_world::{Change, Watched, World};
use tokio::{
    sync::{Mutex, watch},
    task::JoinHandle,
    time::timeout,
};

/// A retry within this time is waited for.
const SOON: Duration = Duration::from_millis(600);

/// The parts of workloads.
pub(crate) fn children() -> [Kind; 6] {
    [
        Deployments::kind(),
        Services::kind(),
        ServiceAccounts::kind(),
        Roles::kind(),
        RoleBindings::kind(),
        ConfigMaps::kind(),
    ]
}

/// How an operator runs in tests.
pub(crate) fn options(namespaces: Vec<String>, settings: Settings) -> Options {
    Options {
        namespaces,
        workers: 4,
        election: None,
        metrics: ([127, 0, 0, 1], 0).into(),
        health: ([127, 0, 0, 1], 0).into(),
        migrate: false,
        unready_after: Options::UNREADY_AFTER,
        observe: false,
        settings,
    }
}

/// A running operator.
pub(crate) struct Operator {
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
    world: Arc<World>,
    /// The writes to its namespaces since it was started.
    writes: Mutex<LastWrites>,
}

impl Operator {
    /// Starts an operator for these namespaces.
    pub(crate) fn start(namespaces: &[&Namespace], config: kube::Config, settings: Settings) -> Self {
        let writes = Mutex::new(LastWrites::start(namespaces));
        let names = namespaces.iter().map(|namespace| namespace.name().to_owned()).collect();
        let (stop, stopped) = watch::channel(false);
        let operator = run::Operator::start(config, options(names, settings)).expect("a client");
        let world = operator.world().clone();
        let task = tokio::spawn(async move { operator.run(stopped).await.expect("the operator runs") });
        Self { stop, task, world, writes }
    }

    /// Whether every write to its namespaces was delivered by the watches, and nothing is left to be reconciled.
    pub(crate) async fn is_idle(&self) -> bool {
        let queue = self.world.queue();
        let finished = queue.finished();
        if !self.world.is_listed() || !queue.is_idle(SOON) {
            return false;
        }
        let received = self.writes.lock().await.read().await.all(|write| self.has_received(write));
        // A job that ran meanwhile may have written after the log was read.
        received && queue.is_idle(SOON) && queue.finished() == finished
    }

    /// How many reconciliations have ended so far.
    pub(crate) fn reconciled(&self) -> u64 {
        self.world.queue().finished()
    }

    fn has_received(&self, write: &LastWrite) -> bool {
        let object = DynamicObject { types: None, metadata: write.metadata.clone(), data: Value::Null };
        let change = if write.deleted { Change::Deleted } else { Change::Stored };
        self.world.has_delivered(&write.group, &write.resource, &object, change)
    }

    pub(crate) async fn stop(self) {
        self.stop.send_replace(true);
        timeout(PATIENCE, self.task).await.expect("the operator stops").expect("it does not panic");
    }
}

/// A namespace with an operator, whose requests are recorded.
pub(crate) struct Fixture {
    pub(crate) test: Namespace,
    pub(crate) user: User,
    pub(crate) operator: Operator,
    config: kube::Config,
    settings: Settings,
}

impl Fixture {
    pub(crate) async fn new() -> Self {
        Self::with(Settings::default()).await
    }

    pub(crate) async fn with(settings: Settings) -> Self {
        Self::on(skep_testkit::namespace().await, settings).await
    }

    /// An operator for this namespace, on the shared or on its own control plane.
    pub(crate) async fn on(test: Namespace, settings: Settings) -> Self {
        // With exactly the permissions that the charts grant.
        let user = test.user("operator");
        test.grant(&user, permissions::rules()).await;
        let config = user.config();
        Self::of(test, user, config, settings)
    }

    /// An operator with this user and this client for the API server.
    pub(crate) fn of(test: Namespace, user: User, config: kube::Config, settings: Settings) -> Self {
        let operator = Operator::start(&[&test], config.clone(), settings.clone());
        Self { test, user, operator, config, settings }
    }

    /// The same with no operator running, until [`Fixture::restart`].
    pub(crate) async fn stopped(mut self) -> Self {
        self.operator.stop.send_replace(true);
        timeout(PATIENCE, &mut self.operator.task)
            .await
            .expect("the operator stops")
            .expect("it does not panic");
        self
    }

    /// Ends the operator and starts another, as an upgrade does.
    pub(crate) async fn restart(self) -> Self {
        let Self { test, user, operator, config, settings } = self;
        if !operator.task.is_finished() {
            operator.stop().await;
        }
        Self::of(test, user, config, settings)
    }

    pub(crate) fn record(&self) -> Recording {
        self.user.record()
    }

    /// Creates a server, and waits until the operator is idle.
    pub(crate) async fn settled(&self, server: &MCPServer) -> MCPServer {
        let created = self.test.create_object(server).await;
        self.settle(created.metadata.name.as_deref().unwrap()).await
    }

    /// Waits until the server's status is about its spec and the operator is idle.
    pub(crate) async fn settle(&self, name: &str) -> MCPServer {
        self.settle_any(Servers::kind(), name).await;
        self.test.api::<MCPServer>().get(name).await.unwrap()
    }

    /// The same for an object of any kind.
    pub(crate) async fn settle_any(&self, kind: Kind, name: &str) -> DynamicObject {
        let settled = async {
            loop {
                let object = self.object(kind, name).await.unwrap();
                let observed = object.data["status"]["observedGeneration"].as_i64();
                if observed == object.metadata.generation && self.operator.is_idle().await {
                    return self.object(kind, name).await.unwrap();
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(PATIENCE, settled).await.unwrap_or_else(|_| panic!("{name} does not settle"))
    }

    /// Waits until nothing is left to be reconciled, for as long as the queue makes progress: there may be many objects, and a small
    /// machine.
    pub(crate) async fn until_idle(&self) {
        let queue = self.operator.world.queue();
        let (mut finished, mut moved) = (queue.finished(), Instant::now());
        while !self.operator.is_idle().await {
            if queue.finished() != finished {
                (finished, moved) = (queue.finished(), Instant::now());
            }
            let depth = queue.depth();
            assert!(moved.elapsed() < PATIENCE, "{depth} objects are queued, and none is reconciled");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Waits until the server's status meets the predicate.
    pub(crate) async fn until(
        &self,
        name: &str,
        what: &str,
        is: impl Fn(&MCPServerStatus) -> bool,
    ) -> MCPServer {
        let typed = |object: &DynamicObject| {
            serde_json::from_value::<MCPServerStatus>(object.data["status"].clone())
                .is_ok_and(|status| is(&status))
        };
        let object = self.until_object(Servers::kind(), name, what, typed).await;
        serde_json::from_value(json!(object)).unwrap()
    }

    /// Waits until an object of any kind meets the predicate.
    pub(crate) async fn until_object(
        &self,
        kind: Kind,
        name: &str,
        what: &str,
        is: impl Fn(&DynamicObject) -> bool,
    ) -> DynamicObject {
        let object = self.handle(kind, name).until(what, |object| object.is_some_and(&is)).await;
        object.unwrap()
    }

    /// Creates an object of any kind.
    pub(crate) async fn create_any(&self, kind: Kind, object: &Value) -> DynamicObject {
        let request = http::Request::post(kind.path(Some(self.test.name())));
        let request = request.body(object.to_string().into_bytes()).unwrap();
        self.test.client().request(request).await.unwrap_or_else(|error| panic!("{object}: {error}"))
    }

    /// Changes the server by a merge patch.
    pub(crate) async fn patch(&self, name: &str, patch: Value) {
        self.patch_any(Servers::kind(), name, patch).await;
    }

    /// Changes an object of any kind by a merge patch.
    pub(crate) async fn patch_any(&self, kind: Kind, name: &str, patch: Value) {
        self.handle(kind, name).patch(&patch).await;
    }

    /// Reports a status as another program does, by a plain write of the whole.
    pub(crate) async fn report_as(&self, manager: &str, kind: Kind, name: &str, status: &Value) {
        let mut object = json!(self.object(kind, name).await.unwrap());
        object["status"] = status.clone();
        let path = kind.path(Some(self.test.name()));
        let request = http::Request::put(format!("{path}/{name}/status?fieldManager={manager}"));
        let request = request.body(object.to_string().into_bytes()).unwrap();
        self.test
            .client()
            .request::<Value>(request)
            .await
            .unwrap_or_else(|error| panic!("{status:#}: {error}"));
    }

    pub(crate) async fn deployment(&self, name: &str) -> Deployment {
        self.test.api::<Deployment>().get(name).await.unwrap()
    }

    /// Creates an object of any kind.
    pub(crate) async fn create(&self, kind: Kind, name: &str, spec: Value) {
        let object = json!({
            "apiVersion": kind.api_version(), "kind": kind.kind, "metadata": {"name": name}, "spec": spec,
        });
        let request = http::Request::post(kind.path(Some(self.test.name())));
        let request = request.body(object.to_string().into_bytes()).unwrap();
        let response = self.test.client().request::<DynamicObject>(request).await;
        response.unwrap_or_else(|error| panic!("{} {name}: {error}", kind.kind));
    }

    /// Deletes an object of any kind.
    pub(crate) async fn delete(&self, kind: Kind, name: &str) {
        self.handle(kind, name).delete().await;
    }

    /// Waits until an object of any kind meets the predicate. A missing one is null.
    pub(crate) async fn until_any(&self, kind: Kind, name: &str, what: &str, is: impl Fn(&Value) -> bool) {
        let is = |object: Option<&DynamicObject>| is(&json!(object));
        self.handle(kind, name).until(what, is).await;
    }

    /// All objects of a kind.
    pub(crate) async fn objects(&self, kind: Kind) -> Vec<Value> {
        let request = http::Request::get(kind.path(Some(self.test.name()))).body(Vec::new()).unwrap();
        let mut list: Value = self.test.client().request(request).await.unwrap();
        serde_json::from_value(list["items"].take()).unwrap()
    }

    /// An object of any kind.
    pub(crate) async fn object(&self, kind: Kind, name: &str) -> Option<DynamicObject> {
        self.handle(kind, name).find().await
    }

    fn handle(&self, kind: Kind, name: &str) -> Handle<DynamicObject> {
        Handle::new(self.api(kind), name)
    }

    /// The API of any kind.
    pub(crate) fn api(&self, kind: Kind) -> Api<DynamicObject> {
        let resource = ApiResource {
            group: kind.group.into(),
            version: kind.version.into(),
            api_version: kind.api_version(),
            kind: kind.kind.into(),
            plural: kind.plural.into(),
        };
        Api::namespaced_with(self.test.client(), self.test.name(), &resource)
    }

    /// The events about objects of our own kinds. The API server publishes events as well, for instance about the addresses of
    /// Services.
    pub(crate) async fn published(&self) -> Vec<Event> {
        let mut events = self.test.api::<Event>().list(&ListParams::default()).await.unwrap().items;
        let is_ours = |event: &Event| {
            let regarding = event.regarding.as_ref().and_then(|regarding| regarding.api_version.as_deref());
            regarding.is_some_and(|version| version.starts_with("toolhive.stacklok.dev/"))
        };
        events.retain(is_ours);
        events
    }

    /// The same as reasons and notes, sorted.
    pub(crate) async fn events(&self) -> Vec<(String, String)> {
        let reported = self.published().await.into_iter();
        let reported =
            reported.map(|event| (event.reason.unwrap_or_default(), event.note.unwrap_or_default()));
        let mut reported: Vec<_> = reported.collect();
        reported.sort();
        reported
    }

    /// The annotations of the proxy's pods.
    pub(crate) async fn pod_annotations(&self, name: &str) -> Value {
        let template = self.deployment(name).await.spec.unwrap().template;
        json!(template.metadata.unwrap().annotations)
    }
}

/// The status and reason of each condition of an object, by type.
pub(crate) fn conditions(object: &DynamicObject) -> BTreeMap<String, (String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let conditions = object.data["status"]["conditions"].as_array().into_iter().flatten();
    conditions.map(|one| (text(&one["type"]), (text(&one["status"]), text(&one["reason"])))).collect()
}

/// The status and reason of a condition.
pub(crate) fn condition(server: &MCPServer, type_: &str) -> Option<(String, String)> {
    let condition = skep_testkit::json::condition(server, type_);
    Some((condition["status"].as_str()?.to_owned(), condition["reason"].as_str()?.to_owned()))
}

/// A text without the checksums in it, which differ where the namespace does.
pub(crate) fn without_checksums(text: &str) -> String {
    static CHECKSUM: LazyLock<Regex> = LazyLock::new(|| Regex::new(r#"(checksum":")[0-9a-f]{64}"#).unwrap());
    CHECKSUM.replace_all(text, "${1}SUM").into_owned()
}
