//! An operator that is killed while it reconciles.

use crate::kinds::Groups;
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
use skep_api::kinds::{EmbeddingServer, MCPRegistry, MCPRemoteProxy, MCPServer, VirtualMCPServer};
use skep_converge::{Kind, Mode};
use skep_operator::{
    reconcile::{Controller, Reconciler},
    resources::kind_of,
    run::watches,
    settings::Settings,
};
use skep_testkit::{Namespace, User};
use skep_world::{Target, Watched};
use tower::{BoxError, filter::FilterLayer};

use super::end_state;

/// The name of the object that is reconciled.
const NAME: &str = "tried";

/// A client that fails after this many writes.
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

/// A namespace with an object of the kind, and the group that it may refer to.
async fn namespace(kind: Kind, spec: &Value) -> Namespace {
    let test = skep_testkit::namespace().await;
    for (kind, name, spec) in [(Groups::kind(), "all", &json!({})), (kind, NAME, spec)] {
        let object = json!({
            "apiVersion": kind.api_version(), "kind": kind.kind, "metadata": {"name": name}, "spec": spec,
        });
        let request = Request::post(kind.path(Some(test.name())));
        let request = request.body(object.to_string().into_bytes()).unwrap();
        test.client().request::<Value>(request).await.unwrap_or_else(|error| panic!("{object}: {error}"));
    }
    test
}

/// Reconciles the object with this client until it is converged, or the client fails.
async fn work<K: Controller>(test: &Namespace, client: Client) -> bool {
    let world = watches().start(&test.client(), &[test.name().into()]);
    world.listed().await;
    let reconciler = Reconciler::<K>::new(
        client,
        world.clone(),
        Arc::new(Settings::default()),
        Arc::default(),
        Mode::Write,
    );
    let (kind, namespace) = (kind_of::<K>(), test.name().into());
    let target = Arc::new(Target { kind, namespace, name: NAME.into() });
    for _ in 0..5 {
        if reconciler.reconcile(&target).await.is_err() {
            return false;
        }
    }
    true
}

/// Kills the operator after each write, and returns how many there are.
async fn kill_after_each_write<K: Controller>(spec: Value) -> i64 {
    let test = namespace(kind_of::<K>(), &spec).await;
    assert!(work::<K>(&test, test.client()).await);
    let good = end_state(&test).await;
    for writes in 0.. {
        let test = namespace(kind_of::<K>(), &spec).await;
        let user = test.admin("mortal");
        let survived = work::<K>(&test, mortal_client(&user, writes)).await;
        assert!(work::<K>(&test, test.client()).await, "nothing blocks the successor");
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
    let writes = kill_after_each_write::<MCPServer>(spec).await;
    assert!(writes >= 9, "only {writes} writes");
}

#[tokio::test]
async fn an_operator_that_is_killed_after_any_write_of_a_remote_proxy_ends_in_the_same_state() {
    let spec = json!({"remoteUrl": "https://remote.example/mcp"});
    let writes = kill_after_each_write::<MCPRemoteProxy>(spec).await;
    assert!(writes >= 7, "only {writes} writes");
}

#[tokio::test]
async fn an_operator_that_is_killed_after_any_write_of_a_virtual_server_ends_in_the_same_state() {
    let spec = json!({"groupRef": {"name": "all"}, "incomingAuth": {"type": "anonymous"}});
    let writes = kill_after_each_write::<VirtualMCPServer>(spec).await;
    // Seven children, the event of the Secret, and the status.
    assert_eq!(writes, 9);
}

#[tokio::test]
async fn an_operator_that_is_killed_after_any_write_of_an_embedding_server_ends_in_the_same_state() {
    let writes = kill_after_each_write::<EmbeddingServer>(json!({"modelCache": {}})).await;
    // Two children, and the status.
    assert_eq!(writes, 3);
}

#[tokio::test]
async fn an_operator_that_is_killed_after_any_write_of_a_registry_ends_in_the_same_state() {
    let writes = kill_after_each_write::<MCPRegistry>(json!({"configYAML": "a: 1\n"})).await;
    // Six children, the event of the deprecation, and the status.
    assert_eq!(writes, 8);
}
