//! An operator that dies in the middle of its work.

use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering},
};

use http::{Method, Request};
use kube::{
    Client,
    client::{Body, ClientBuilder},
};
use serde_json::{Value, json};
use skep_converge::{Kind, Mode};
use skep_operator::{
    driver::{Controller, Driver},
    kinds::{Embeddings, McpRegistries, McpRemoteProxies, McpServers, VirtualMcpServers},
    settings::Settings,
    watched::{Groups, watches},
};
use skep_testkit::{Namespace, User};
use skep_world::{Target, Watched};
use tower::{BoxError, filter::FilterLayer};

use super::end_state;

/// The name of what is worked on.
const NAME: &str = "tried";

/// A client that dies with the write after this many.
fn mortal_client(user: &User, writes: i64) -> Client {
    let left = Arc::new(AtomicI64::new(writes));
    let live_or_die = move |request: Request<Body>| -> Result<Request<Body>, BoxError> {
        let writes = *request.method() != Method::GET;
        if writes && left.fetch_sub(1, Ordering::Relaxed) <= 0 {
            return Err("killed".into());
        }
        Ok(request)
    };
    ClientBuilder::try_from(user.config()).unwrap().with_layer(&FilterLayer::new(live_or_die)).build()
}

/// A namespace with an object of the kind, and the group that it may ask for.
async fn namespace(kind: Kind, spec: &Value) -> Namespace {
    let test = skep_testkit::namespace().await;
    for (kind, name, spec) in [(Groups::KIND, "all", &json!({})), (kind, NAME, spec)] {
        let object = json!({
            "apiVersion": kind.api_version(), "kind": kind.kind, "metadata": {"name": name}, "spec": spec,
        });
        let request = Request::post(kind.path(Some(test.name())));
        let request = request.body(object.to_string().into_bytes()).unwrap();
        test.client().request::<Value>(request).await.unwrap_or_else(|error| panic!("{object}: {error}"));
    }
    test
}

/// Works on the object with this client until there is nothing more to do, or the client is dead.
async fn work<C: Controller>(test: &Namespace, client: Client, controller: C) -> bool {
    let world = watches().start(&test.client(), &[test.name().into()]);
    world.listed().await;
    let driver = Driver::new(controller, client, world.clone(), Mode::Write);
    let (kind, namespace) = (C::Resource::KIND, test.name().into());
    let target = Arc::new(Target { kind, namespace, name: NAME.into() });
    for _ in 0..5 {
        if driver.reconcile(&target).await.is_err() {
            return false;
        }
    }
    true
}

/// Kills the operator after each write, and returns how many there are.
async fn kill_after_each_write<C: Controller>(new: impl Fn(Arc<Settings>) -> C, spec: Value) -> i64 {
    let controller = || new(Arc::new(Settings::default()));
    let test = namespace(C::Resource::KIND, &spec).await;
    assert!(work(&test, test.client(), controller()).await);
    let good = end_state(&test).await;
    for writes in 0.. {
        let test = namespace(C::Resource::KIND, &spec).await;
        let user = test.admin("mortal");
        let survived = work(&test, mortal_client(&user, writes), controller()).await;
        assert!(work(&test, test.client(), controller()).await, "the next one has nothing in its way");
        similar_asserts::assert_eq!(end_state(&test).await, good, "killed after {writes} writes");
        if survived {
            return writes;
        }
    }
    unreachable!("it never survives")
}

#[tokio::test]
async fn an_operator_that_is_killed_after_any_write_of_a_server_ends_in_the_same_state() {
    let limit = json!({"maxTokens": 5, "refillPeriod": "1m"});
    let spec = json!({
        "image": "registry.example/mcp:1", "transport": "streamable-http", "rateLimiting": {"shared": limit},
        "sessionStorage": {"provider": "redis", "address": "redis:6379"},
    });
    let writes = kill_after_each_write(McpServers::new, spec).await;
    assert!(writes >= 9, "only {writes} writes");
}

#[tokio::test]
async fn an_operator_that_is_killed_after_any_write_of_a_remote_proxy_ends_in_the_same_state() {
    let spec = json!({"remoteUrl": "https://remote.example/mcp"});
    let writes = kill_after_each_write(McpRemoteProxies::new, spec).await;
    assert!(writes >= 7, "only {writes} writes");
}

#[tokio::test]
async fn an_operator_that_is_killed_after_any_write_of_a_virtual_server_ends_in_the_same_state() {
    let spec = json!({"groupRef": {"name": "all"}, "incomingAuth": {"type": "anonymous"}});
    let writes = kill_after_each_write(VirtualMcpServers::new, spec).await;
    // Seven children, the event of the Secret, and the status.
    assert_eq!(writes, 9);
}

#[tokio::test]
async fn an_operator_that_is_killed_after_any_write_of_an_embedding_server_ends_in_the_same_state() {
    let writes = kill_after_each_write(Embeddings::new, json!({"modelCache": {}})).await;
    // Two children, and the status.
    assert_eq!(writes, 3);
}

#[tokio::test]
async fn an_operator_that_is_killed_after_any_write_of_a_registry_ends_in_the_same_state() {
    let writes = kill_after_each_write(McpRegistries::new, json!({"configYAML": "a: 1\n"})).await;
    // Six children, the event of the deprecation, and the status.
    assert_eq!(writes, 8);
}
