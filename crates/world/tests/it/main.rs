//! Reads that subscribe the reader, on a real API server.

// A test panics when an expectation fails.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use k8s_openapi::api::core::v1::{ConfigMap, Secret, ServiceAccount};
use kube::{
    api::{DeleteParams, Patch, PatchParams},
    core::DynamicObject,
};
use serde_json::{Value, json};
use skep_converge::Kind;
use skep_testkit::{ControlPlane, Namespace, User};
use skep_world::{Content, Target, Watched, World};
use tokio::time::timeout;

/// ConfigMaps, indexed by their key `refers-to`. They represent the kind that a controller reconciles.
struct ConfigMaps;

impl Watched for ConfigMaps {
    type Cached = Value;
    fn kind() -> Kind {
        Kind::of::<ConfigMap>()
    }

    fn project(object: &DynamicObject) -> Value {
        object.data["data"].clone()
    }

    fn index(cached: &Value) -> Vec<String> {
        cached["refers-to"].as_str().map(String::from).into_iter().collect()
    }
}

/// Secrets, whose values are not cached.
struct Secrets;

impl Watched for Secrets {
    type Cached = ();
    fn kind() -> Kind {
        Kind::of::<Secret>()
    }
    const METADATA_ONLY: bool = true;

    fn project(_: &DynamicObject) {}
}

/// The keys of a Secret.
struct Keys(Vec<String>);

impl Content for Keys {
    type Of = Secrets;

    fn of(object: DynamicObject) -> Self {
        Self(object.data["data"].as_object().map(|data| data.keys().cloned().collect()).unwrap_or_default())
    }

    fn size(&self) -> usize {
        self.0.iter().map(String::len).sum()
    }
}

struct Fixture {
    test: Namespace,
    user: User,
    world: Arc<World>,
}

impl Fixture {
    async fn new(test: Namespace) -> Self {
        let user = test.admin("watcher");
        let namespaces = [test.name().to_owned()];
        let world =
            World::builder().control::<ConfigMaps>().watch::<Secrets>().start(&user.client(), &namespaces);
        world.listed().await;
        Self { test, user, world }
    }

    fn target(&self, name: &str) -> Arc<Target> {
        Arc::new(Target { kind: ConfigMaps::kind(), namespace: self.test.name().into(), name: name.into() })
    }

    async fn put(&self, name: &str, data: BTreeMap<&str, &str>) {
        let object =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data});
        let api = self.test.api::<ConfigMap>();
        api.patch(name, &PatchParams::apply("test").force(), &Patch::Apply(object)).await.unwrap();
    }

    async fn next(&self) -> String {
        let job =
            timeout(Duration::from_secs(20), self.world.queue().next()).await.expect("a target is queued");
        let name = job.target.name.to_string();
        self.world.queue().finish(job, false);
        name
    }

    async fn expect_idle(&self) {
        let job = timeout(Duration::from_millis(300), self.world.queue().next()).await;
        assert!(job.is_err(), "{} was woken", job.unwrap().target.name);
    }
}

#[tokio::test]
async fn a_reader_is_queued_only_by_objects_that_it_read() {
    let fixture = Fixture::new(skep_testkit::namespace().await).await;
    let mut reader = fixture.world.reader(fixture.target("reader"));
    assert_eq!(reader.get::<ConfigMaps>("absent"), None);
    reader.finish();

    fixture.put("other", [("a", "1")].into()).await;
    assert_eq!(fixture.next().await, "other", "an object of a controlled kind is queued itself");
    fixture.expect_idle().await;

    fixture.put("absent", [("a", "1")].into()).await;
    let mut woken = [fixture.next().await, fixture.next().await];
    woken.sort();
    assert_eq!(woken, ["absent", "reader"], "the reader waits for an absent object");

    let mut reader = fixture.world.reader(fixture.target("reader"));
    reader.get::<ConfigMaps>("other");
    reader.finish();
    fixture.test.api::<ConfigMap>().delete("absent", &DeleteParams::default()).await.unwrap();
    assert_eq!(fixture.next().await, "absent");
    fixture.expect_idle().await;
}

#[tokio::test]
async fn a_changed_reference_queues_the_old_and_the_new_target() {
    let fixture = Fixture::new(skep_testkit::namespace().await).await;
    for name in ["old", "new"] {
        let mut reader = fixture.world.reader(fixture.target(name));
        assert_eq!(reader.by_index::<ConfigMaps>(name), []);
        reader.finish();
    }
    fixture.put("referrer", [("refers-to", "old")].into()).await;
    let mut woken = [fixture.next().await, fixture.next().await];
    woken.sort();
    assert_eq!(woken, ["old", "referrer"]);

    fixture.put("referrer", [("refers-to", "new")].into()).await;
    let mut woken = [fixture.next().await, fixture.next().await, fixture.next().await];
    woken.sort();
    assert_eq!(woken, ["new", "old", "referrer"]);
    let mut reader = fixture.world.reader(fixture.target("new"));
    let found: Vec<String> = reader.by_index::<ConfigMaps>("new").into_iter().map(|(name, _)| name).collect();
    assert_eq!(found, ["referrer"]);
}

#[tokio::test]
async fn content_is_fetched_once_for_each_state_of_an_object() {
    let fixture = Fixture::new(skep_testkit::namespace().await).await;
    let secret = |keys: &[&str]| {
        let data: BTreeMap<&str, &str> = keys.iter().map(|key| (*key, "c2VjcmV0")).collect();
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": data})
    };
    let api = fixture.test.api::<Secret>();
    let read = async |expected: Option<&[&str]>| {
        let until = async {
            loop {
                let mut reader = fixture.world.reader(fixture.target("reader"));
                let content = reader.content::<Keys>("s").await.unwrap();
                reader.finish();
                if content
                    .as_ref()
                    .map(|keys| keys.0.iter().map(String::as_str).collect::<Vec<_>>())
                    .as_deref()
                    == expected
                {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(Duration::from_secs(20), until).await.unwrap_or_else(|_| panic!("never {expected:?}"));
    };
    read(None).await;
    api.patch("s", &PatchParams::apply("test"), &Patch::Apply(secret(&["a"]))).await.unwrap();
    read(Some(&["a"])).await;
    let recording = fixture.user.record();
    for _ in 0..5 {
        read(Some(&["a"])).await;
    }
    assert_eq!(recording.requests().await, [], "nothing is requested while nothing changes");
    api.patch("s", &PatchParams::apply("test"), &Patch::Apply(secret(&["a", "b"]))).await.unwrap();
    read(Some(&["a", "b"])).await;
    assert_eq!(recording.count("get", "secrets", "").await, 1);
}

#[tokio::test]
async fn a_change_of_content_queues_only_the_readers_of_the_content() {
    let fixture = Fixture::new(skep_testkit::namespace().await).await;
    let secret = |key: &str| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {key: "c2VjcmV0"}});
    let api = fixture.test.api::<Secret>();
    let apply = async |key| {
        api.patch("s", &PatchParams::apply("test"), &Patch::Apply(secret(key))).await.unwrap();
    };
    let mut looker = fixture.world.reader(fixture.target("looker"));
    assert!(looker.get::<Secrets>("s").is_none());
    looker.finish();
    apply("a").await;
    assert_eq!(fixture.next().await, "looker");
    for (name, whole) in [("looker", false), ("reader", true)] {
        let mut reader = fixture.world.reader(fixture.target(name));
        if whole {
            reader.content::<Keys>("s").await.unwrap().unwrap();
        } else {
            reader.get::<Secrets>("s").unwrap();
        }
        reader.finish();
    }
    apply("b").await;
    assert_eq!(fixture.next().await, "reader");
    fixture.expect_idle().await;
}

#[tokio::test]
async fn changes_during_an_interruption_of_the_watch_are_noticed() {
    let mut plane = ControlPlane::start().await;
    let fixture = Fixture::new(plane.namespace().await).await;
    fixture.put("deleted", [("a", "1")].into()).await;
    fixture.put("changed", [("a", "1")].into()).await;
    let mut woken = [fixture.next().await, fixture.next().await];
    woken.sort();
    assert_eq!(woken, ["changed", "deleted"]);
    for name in ["deleted", "changed"] {
        let mut reader = fixture.world.reader(fixture.target(name));
        reader.get::<ConfigMaps>(name).unwrap();
        reader.finish();
    }

    plane.api_link().drop_connections();
    plane.kill_api_server();
    plane.start_api_server().await;
    fixture.put("changed", [("a", "2")].into()).await;
    fixture.test.api::<ConfigMap>().delete("deleted", &DeleteParams::default()).await.unwrap();
    let mut woken = [fixture.next().await, fixture.next().await];
    woken.sort();
    assert_eq!(woken, ["changed", "deleted"]);
    let mut reader = fixture.world.reader(fixture.target("x"));
    assert_eq!(reader.get::<ConfigMaps>("deleted"), None);
    assert_eq!(reader.get::<ConfigMaps>("changed").unwrap().cached, json!({"a": "2"}));
}

/// A restore marks all revisions as compacted, so every watch lists again, and gets states that are older than the cached ones.
#[tokio::test]
async fn a_list_after_a_restore_from_a_backup_replaces_newer_states() {
    let mut plane = ControlPlane::start().await;
    let fixture = Fixture::new(plane.namespace().await).await;
    let cached = || {
        let mut reader = fixture.world.reader(fixture.target("reader"));
        reader.get::<ConfigMaps>("one").map(|entry| entry.cached)
    };
    fixture.put("one", [("a", "from the backup")].into()).await;
    assert_eq!(fixture.next().await, "one");
    let mut lost = json!(fixture.test.api::<ConfigMap>().get("one").await.unwrap());
    lost["metadata"]["resourceVersion"] = json!("1000000000");
    lost["data"] = json!({"a": "written after the backup"});
    fixture.world.record_write::<ConfigMaps>(&serde_json::from_value(lost).unwrap());
    assert_eq!(fixture.next().await, "one");
    assert_eq!(cached(), Some(json!({"a": "written after the backup"})));

    // A new API server has no revisions before this one, so every watch must list again.
    let account = json!({"metadata": {"name": "later"}});
    fixture.test.create_object::<ServiceAccount>(&serde_json::from_value(account).unwrap()).await;
    plane.api_link().drop_connections();
    plane.kill_api_server();
    plane.start_api_server().await;
    assert_eq!(fixture.next().await, "one");
    assert_eq!(cached(), Some(json!({"a": "from the backup"})));
}

#[tokio::test]
async fn a_reader_of_members_is_queued_when_one_is_added_or_removed_and_not_when_one_changes() {
    let fixture = Fixture::new(skep_testkit::namespace().await).await;
    let members = || {
        let mut reader = fixture.world.reader(fixture.target("reader"));
        let members = reader.members::<ConfigMaps>("a");
        reader.finish();
        members
    };
    assert!(members().is_empty());
    fixture.put("one", [("refers-to", "a")].into()).await;
    let mut woken = [fixture.next().await, fixture.next().await];
    woken.sort();
    assert_eq!(woken, ["one", "reader"]);
    assert_eq!(members(), ["one"]);

    fixture.put("one", [("refers-to", "a"), ("and", "more")].into()).await;
    assert_eq!(fixture.next().await, "one");
    fixture.expect_idle().await;

    fixture.put("one", [("refers-to", "b")].into()).await;
    let mut woken = [fixture.next().await, fixture.next().await];
    woken.sort();
    assert_eq!(woken, ["one", "reader"]);
    assert!(members().is_empty());
}

#[tokio::test]
async fn a_refreshed_list_is_ahead_of_a_lagging_watch() {
    let fixture = Fixture::new(skep_testkit::namespace().await).await;
    let reader = fixture.world.reader(fixture.target("reader"));
    fixture.put("one", [("refers-to", "a")].into()).await;
    // Nothing was awaited in between, so that only the list can have delivered it.
    reader.refresh::<ConfigMaps>().await.unwrap();
    let mut reader = reader;
    assert_eq!(reader.members::<ConfigMaps>("a"), ["one"]);
}

#[tokio::test]
async fn a_late_response_does_not_restore_an_object_that_the_watch_reported_as_deleted() {
    let fixture = Fixture::new(skep_testkit::namespace().await).await;
    let known = || {
        let mut reader = fixture.world.reader(fixture.target("reader"));
        (reader.get::<ConfigMaps>("one").map(|entry| entry.cached), reader.members::<ConfigMaps>("a"))
    };
    let nothing = (None, Vec::new());
    fixture.put("one", [("refers-to", "a")].into()).await;
    assert_eq!(fixture.next().await, "one");
    let api = fixture.test.api::<ConfigMap>();
    let late: DynamicObject =
        serde_json::from_value(json!(api.get("one").await.unwrap())).expect("it is an object");
    api.delete("one", &DeleteParams::default()).await.unwrap();
    assert_eq!(fixture.next().await, "one");
    assert_eq!(known(), nothing);

    fixture.world.record_write::<ConfigMaps>(&late);
    assert_eq!(known(), nothing, "the list was read before the deletion, and is processed after it");
    fixture.expect_idle().await;

    fixture.put("one", [("b", "1")].into()).await;
    assert_eq!(fixture.next().await, "one");
    fixture.world.record_write::<ConfigMaps>(&late);
    assert_eq!(known(), (Some(json!({"b": "1"})), Vec::new()), "the new one of that name stays");
}
