//! Objects that were stored before their CRD changed its storage version, inspected in etcd itself.

use crate::kinds::{Groups, Servers, ToolConfigs};
use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use http::{Method, Request};
use k8s_openapi::{
    api::{events::v1::Event, rbac::v1::PolicyRule},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client,
    api::{ListParams, Patch, PatchParams, PostParams},
    client::{Body, ClientBuilder},
    core::DynamicObject,
};
use serde_json::{Value, json};
use skep_api::kinds::{MCPGroup, MCPServer, MCPToolConfig};
use skep_converge::Kind;
use skep_operator::{
    migrator::{Migration, Migrator},
    permissions,
    run::{self, Options},
    settings::Settings,
};
use skep_testkit::{
    ControlPlane, Namespace, User,
    fixtures::{TestGroup, TestServer, TestToolConfig},
    until,
};
use skep_world::Watched;
use tokio::{sync::watch, time::timeout};
use tower::{BoxError, filter::FilterLayer};

const OLD: &str = "v1alpha1";
const NEW: &str = "v1beta1";
/// More than two pages.
const GROUPS: usize = 210;
const PATIENCE: Duration = Duration::from_secs(90);

/// A cluster whose CRDs have just changed from [`OLD`] to [`NEW`].
struct Cluster {
    plane: ControlPlane,
    test: Namespace,
}

impl Cluster {
    async fn upgraded() -> Self {
        let plane = ControlPlane::start().await;
        let test = plane.namespace().await;
        let cluster = Self { plane, test };
        cluster.switch_to(OLD).await;
        for index in 0..GROUPS {
            cluster.test.create_object(&MCPGroup::test(&format!("group-{index}"))).await;
        }
        cluster.test.create_object(&MCPToolConfig::test("tools").offering("fetch")).await;
        cluster.test.create_object(&MCPServer::test("fetch")).await;
        // Another operator's status, and a user's annotation.
        let api = cluster.test.api::<MCPServer>();
        let status = json!({"status": {"phase": "Ready", "url": "http://fetch", "observedGeneration": 1}});
        api.patch_status("fetch", &manager("thv-operator"), &Patch::Merge(status)).await.unwrap();
        let note = json!({"metadata": {"annotations": {"example.org/note": "mine"}}});
        api.patch("fetch", &manager("another-writer"), &Patch::Merge(note)).await.unwrap();
        cluster.switch_to(NEW).await;
        cluster
    }

    /// Makes this the storage version of every CRD, and waits until the API server uses it.
    async fn switch_to(&self, version: &str) {
        for mut crd in skep_api::crd::crds().unwrap() {
            if crd.spec.versions.len() > 1 {
                crd.spec.versions.iter_mut().for_each(|one| one.storage = one.name == version);
            }
            let name = crd.metadata.name.clone().unwrap();
            let params = PatchParams::apply("skep-testkit").force();
            crds(self.test.client()).patch(&name, &params, &Patch::Apply(&crd)).await.unwrap();
        }
        let server = serde_json::to_value(MCPServer::test("x").spec).unwrap();
        for (kind, spec) in
            [(Groups::kind(), json!({})), (ToolConfigs::kind(), json!({})), (Servers::kind(), server)]
        {
            let stored_in = format!("{}/{version}", skep_api::GROUP);
            until(&stored_in, async || self.probe(kind, &spec).await == stored_in).await;
        }
    }

    /// The version that a new object is stored in.
    async fn probe(&self, kind: Kind, spec: &Value) -> String {
        let path = kind.path(Some(self.test.name()));
        let probe = json!({
            "apiVersion": kind.api_version(), "kind": kind.kind, "metadata": {"name": "probe"}, "spec": spec,
        });
        let request = Request::post(&path).body(probe.to_string().into_bytes()).unwrap();
        self.test.client().request::<DynamicObject>(request).await.unwrap();
        let stored = self.plane.stored(&format!("{}/{}/probe", kind.plural, self.test.name())).await;
        let request = Request::delete(format!("{path}/probe")).body(Vec::new()).unwrap();
        self.test.client().request::<Value>(request).await.unwrap();
        stored.values().next().unwrap()["apiVersion"].as_str().unwrap().into()
    }

    /// How many custom resources are stored in which version.
    async fn versions(&self) -> BTreeMap<String, usize> {
        let mut versions = BTreeMap::new();
        for object in self.plane.stored("").await.values() {
            let version = object["apiVersion"].as_str().unwrap().rsplit_once('/').unwrap().1;
            *versions.entry(version.to_owned()).or_default() += 1;
        }
        versions
    }

    async fn until_migrated(&self) {
        let done = |crd: &CustomResourceDefinition| {
            let storage = crd.spec.versions.iter().find(|version| version.storage).unwrap();
            crd.status.as_ref().unwrap().stored_versions.iter().flatten().eq([&storage.name])
        };
        until("all CRDs have one stored version", async || {
            crds(self.test.client()).list(&ListParams::default()).await.unwrap().items.iter().all(done)
        })
        .await;
    }

    /// Every object as the API shows it, in the order of their names.
    async fn objects(&self) -> Vec<Value> {
        let mut objects = Vec::new();
        for kind in [Groups::kind(), ToolConfigs::kind(), Servers::kind()] {
            let request = Request::get(kind.path(Some(self.test.name()))).body(Vec::new()).unwrap();
            let mut list: Value = self.test.client().request(request).await.unwrap();
            objects.append(list["items"].as_array_mut().unwrap());
        }
        objects
    }

    /// The events about CRDs, as type, reason and action.
    async fn events(&self) -> Vec<(String, String, String)> {
        let events = Api::<Event>::namespaced(self.test.client(), "default");
        let events = events.list(&ListParams::default()).await.unwrap().items.into_iter();
        let of_crds = events.filter(|event| {
            event
                .regarding
                .as_ref()
                .is_some_and(|about| about.kind.as_deref() == Some("CustomResourceDefinition"))
        });
        let mut reported: Vec<_> = of_crds
            .map(|event| (event.type_.unwrap(), event.reason.unwrap(), event.action.unwrap()))
            .collect();
        reported.sort();
        reported
    }

    /// A user with only the permissions that a migrator needs, including events.
    async fn user(&self, role: &str, mut rules: Vec<PolicyRule>) -> User {
        let user = self.test.user(role);
        rules.extend(permissions::rules().into_iter().filter(|rule| {
            rule.resources
                .as_ref()
                .is_some_and(|resources| resources.iter().any(|resource| resource == "events"))
        }));
        self.test.grant_everywhere(&user, rules).await;
        user
    }
}

fn crds(client: Client) -> Api<CustomResourceDefinition> {
    Api::all(client)
}

fn manager(name: &str) -> PatchParams {
    PatchParams { field_manager: Some(name.into()), ..PatchParams::default() }
}

fn without_resource_version(mut objects: Vec<Value>) -> Vec<Value> {
    for object in &mut objects {
        object["metadata"].as_object_mut().unwrap().remove("resourceVersion").unwrap();
    }
    objects
}

/// A client that fails after this many writes.
fn mortal_client(user: &User, writes: usize) -> Client {
    let seen = Arc::new(AtomicUsize::new(0));
    let live_or_die = move |request: Request<Body>| -> Result<Request<Body>, BoxError> {
        if *request.method() != Method::GET && seen.fetch_add(1, Ordering::Relaxed) >= writes {
            return Err("killed".into());
        }
        Ok(request)
    };
    ClientBuilder::try_from(user.config()).unwrap().with_layer(&FilterLayer::new(live_or_die)).build()
}

#[tokio::test]
async fn every_object_is_stored_in_the_storage_version_and_nothing_else_changes() {
    let cluster = Cluster::upgraded().await;
    let objects = GROUPS + 2;
    assert_eq!(cluster.versions().await, BTreeMap::from([(OLD.into(), objects)]));
    let before = cluster.objects().await;
    let user = cluster.user("migrator", permissions::migration_rules()).await;

    let (stop, stopped) = watch::channel(false);
    let recording = user.record();
    let migrator = Migrator::new(user.client());
    let running = tokio::spawn(async move { migrator.run(stopped).await });
    cluster.until_migrated().await;
    assert_eq!(cluster.versions().await, BTreeMap::from([(NEW.into(), objects)]));
    let after = cluster.objects().await;
    similar_asserts::assert_eq!(without_resource_version(after.clone()), without_resource_version(before));
    let reported = ("Normal".to_owned(), "StorageVersionMigrationSucceeded".to_owned(), "Migrate".to_owned());
    let kinds = skep_api::crd::crds().unwrap().iter().filter(|crd| crd.spec.versions.len() > 1).count();
    // The last event is published after the change that it reports.
    until("each CRD has its event", async || cluster.events().await == vec![reported.clone(); kinds]).await;
    // One write for each object, and one for each CRD that has two versions.
    let writes = recording.writes().await;
    let events = writes.iter().filter(|write| write.contains("events")).count();
    assert_eq!((writes.len() - events, events), (objects + kinds, kinds), "{writes:#?}");
    stop.send_replace(true);
    timeout(PATIENCE, running).await.unwrap().unwrap();

    // Another migrator has nothing to do.
    let recording = user.record();
    let migrator = Migrator::new(user.client());
    for crd in crds(cluster.test.client()).list(&ListParams::default()).await.unwrap() {
        assert_eq!(migrator.migrate(&crd.metadata.name.unwrap()).await.unwrap(), Migration::Nothing);
    }
    assert_eq!(recording.writes().await, [""; 0]);
    assert_eq!(cluster.objects().await, after);
}

#[tokio::test]
async fn a_successor_completes_the_work_of_a_killed_operator() {
    let cluster = Cluster::upgraded().await;
    let before = cluster.objects().await;
    let crd = "mcpgroups.toolhive.stacklok.dev";
    let user = cluster.user("mortal", permissions::migration_rules()).await;
    let stored = async || crds(cluster.test.client()).get(crd).await.unwrap().status.unwrap().stored_versions;
    for writes in [0, 1, 57, 100, 150, GROUPS] {
        Migrator::new(mortal_client(&user, writes)).migrate(crd).await.unwrap_err();
        assert_eq!(cluster.versions().await.get(NEW).copied().unwrap_or_default(), writes);
        assert_eq!(stored().await.unwrap().len(), 2, "killed after {writes} writes");
    }
    // While another client writes and deletes concurrently.
    let groups = cluster.test.api::<MCPGroup>();
    groups.delete("group-7", &Default::default()).await.unwrap();
    groups.create(&PostParams::default(), &MCPGroup::test("late")).await.unwrap();
    assert_eq!(Migrator::new(user.client()).migrate(crd).await.unwrap(), Migration::Done(GROUPS));
    assert_eq!(stored().await.unwrap(), [NEW]);
    assert_eq!(cluster.versions().await, BTreeMap::from([(OLD.into(), 2), (NEW.into(), GROUPS)]));
    let cached = |objects: Vec<Value>| -> Vec<Value> {
        let moved = ["late", "group-7"];
        let cached = objects
            .into_iter()
            .filter(|object| !moved.iter().any(|name| object["metadata"]["name"] == *name));
        without_resource_version(cached.collect())
    };
    similar_asserts::assert_eq!(cached(cluster.objects().await), cached(before));
}

#[tokio::test]
async fn obstacles_to_a_migration_are_reported_on_the_crd() {
    let cluster = Cluster::upgraded().await;
    let crd = "mcptoolconfigs.toolhive.stacklok.dev";
    let [read, status, mut objects] = <[PolicyRule; 3]>::try_from(permissions::migration_rules()).unwrap();
    let user = cluster.user("no-status", vec![read.clone(), objects.clone()]).await;
    let failure = Migrator::new(user.client()).migrate(crd).await.unwrap_err().to_string();
    assert!(failure.starts_with("status.storedVersions cannot be written: "), "{failure}");
    objects.verbs.retain(|verb| verb != "patch");
    let user = cluster.user("no-patch", vec![read, status, objects]).await;
    let failure = Migrator::new(user.client()).migrate(crd).await.unwrap_err().to_string();
    let first = format!("1 of its objects cannot be migrated; {}/tools: ", cluster.test.name());
    assert!(failure.starts_with(&first), "{failure}");
    let reported = |action: &str| ("Warning".into(), "StorageVersionMigrationFailed".into(), action.into());
    assert_eq!(cluster.events().await, [reported("PatchStoredVersions"), reported("RestoreCRs")]);
}

#[tokio::test]
async fn only_an_operator_for_all_namespaces_migrates_and_only_if_enabled() {
    let cluster = Cluster::upgraded().await;
    let user = cluster.test.user("operator");
    let rules = permissions::rules().into_iter().chain(permissions::migration_rules()).collect();
    cluster.test.grant_everywhere(&user, rules).await;
    let start = |namespaces: Vec<String>| {
        let (stop, stopped) = watch::channel(false);
        let address = ([127, 0, 0, 1], 0).into();
        let options = Options {
            namespaces,
            workers: 4,
            election: None,
            metrics: address,
            health: address,
            migrate: true,
            unready_after: Options::UNREADY_AFTER,
            observe: false,
            settings: Settings::default(),
        };
        let config = user.config();
        (stop, tokio::spawn(async move { run::run(config, options, stopped).await.unwrap() }))
    };
    let recording = user.record();
    let (stop, task) = start(vec![cluster.test.name().into()]);
    let has_status = |group: Option<&MCPGroup>| group.is_some_and(|group| group.status.is_some());
    cluster.test.object("group-0").until("reconciled", has_status).await;
    stop.send_replace(true);
    timeout(PATIENCE, task).await.unwrap().unwrap();
    let requests = recording.requests().await;
    assert!(requests.iter().all(|request| request.resource != "customresourcedefinitions"));

    let (stop, task) = start(Vec::new());
    cluster.until_migrated().await;
    assert_eq!(cluster.versions().await, BTreeMap::from([(NEW.into(), GROUPS + 2)]));
    stop.send_replace(true);
    timeout(PATIENCE, task).await.unwrap().unwrap();
}
