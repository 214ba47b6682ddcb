//! Two proxies at the same time: between the reads and the writes of one, the other may do everything.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use http::{Method, Request};
use k8s_openapi::api::{apps::v1::StatefulSet, core::v1::Service};
use kube::{
    Client,
    api::DeleteParams,
    client::{Body, ClientBuilder},
};
use serde_json::json;
use skep_testkit::User;
use tokio::sync::Notify;
use tower::{
    BoxError,
    buffer::BufferLayer,
    filter::{AsyncFilterLayer, AsyncPredicate},
};

use super::fixture::{Fixture, config, image, is_held_back, of_generation};

/// A client whose requests pass through this layer.
fn client_with<U>(user: &User, layer: AsyncFilterLayer<U>) -> Client
where
    U: AsyncPredicate<Request<Body>, Request = Request<Body>> + Clone + Send + Sync + 'static,
    U::Future: Send,
{
    let client = ClientBuilder::try_from(user.config()).unwrap();
    client.with_layer(&BufferLayer::new(8)).with_layer(&layer).build()
}

/// A client whose writes are delayed by this time after its reads.
fn slow_to_write(user: &User, delay: Duration) -> Client {
    let wait = move |request: Request<Body>| async move {
        if request.method() == Method::PATCH {
            tokio::time::sleep(delay).await;
        }
        Ok::<_, BoxError>(request)
    };
    client_with(user, AsyncFilterLayer::new(wait))
}

/// A client whose request with this number, counted from 1, notifies `reached` and waits for `go` before it is sent.
fn held_at(user: &User, number: usize, reached: Arc<Notify>, go: Arc<Notify>) -> Client {
    let count = Arc::new(AtomicUsize::new(0));
    let wait = move |request: Request<Body>| {
        let (count, reached, go) = (count.clone(), reached.clone(), go.clone());
        async move {
            if count.fetch_add(1, Ordering::SeqCst) + 1 == number {
                reached.notify_one();
                go.notified().await;
            }
            Ok::<_, BoxError>(request)
        }
    };
    client_with(user, AsyncFilterLayer::new(wait))
}

#[tokio::test]
async fn of_two_concurrent_proxies_the_newer_one_always_wins() {
    let fixture = Fixture::new().await;
    let slow = fixture.through(slow_to_write(&fixture.proxy, Duration::from_millis(15)));
    let quick = fixture.kubernetes();
    for round in 0..40 {
        let (older, newer) = (2 * round + 1, 2 * round + 2);
        // Either one is the slow one, with and without existing objects.
        let (first, second) = if round % 2 == 0 { (&slow, &quick) } else { (&quick, &slow) };
        let (older_config, newer_config) = (of_generation(older), of_generation(newer));
        let (old, new) = tokio::join!(first.run(&older_config), second.run(&newer_config));
        let (_, new) = (old.unwrap(), new.unwrap());
        assert!(!is_held_back(&new), "round {round}");
        assert_eq!(fixture.image().await, format!("files:{newer}"), "round {round}");
        if round % 4 == 3 {
            fixture.test.api::<StatefulSet>().delete("files", &DeleteParams::default()).await.unwrap();
            fixture.test.api::<Service>().delete("mcp-files", &DeleteParams::default()).await.unwrap();
        }
    }
}

/// How many requests a proxy needs: it reads a StatefulSet and two Services, and applies them.
const REQUESTS: usize = 6;

/// The old proxy is suspended at one of its requests, the new one runs, and then the old one continues.
async fn overtaken_at(fixture: &Fixture, request: usize) {
    let (reached, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let old = fixture.through(held_at(&fixture.proxy, request, reached.clone(), go.clone()));
    let old = tokio::spawn(async move {
        old.run(&config(json!({"mcpserver_generation": 1, "image": "files:1", "target_port": 1111}))).await
    });
    reached.notified().await;
    fixture.run(&config(json!({"mcpserver_generation": 2, "image": "files:2", "target_port": 2222}))).await;
    go.notify_one();
    let old = old.await.unwrap().unwrap();
    assert!(is_held_back(&old), "at request {request}");
    assert_eq!(fixture.image().await, "files:2", "at request {request}");
    for name in ["mcp-files", "mcp-files-headless"] {
        let ports = fixture.service(name).await.spec.unwrap().ports.unwrap();
        let numbers: Vec<i32> = ports.iter().map(|port| port.port).collect();
        assert_eq!(numbers, [2222], "{name} at request {request}");
    }
}

#[tokio::test]
async fn an_old_proxy_that_is_overtaken_at_any_request_does_not_overwrite_the_new_one() {
    for request in 1..=REQUESTS {
        // Nothing exists yet: it is a race to create.
        overtaken_at(&Fixture::new().await, request).await;
        // All objects exist already.
        let fixture = Fixture::new().await;
        fixture.run(&config(json!({"image": "files:0"}))).await;
        overtaken_at(&fixture, request).await;
    }
}

#[tokio::test]
async fn a_conflict_because_of_a_deletion_is_retried() {
    let fixture = Fixture::new().await;
    fixture.run(&of_generation(1)).await;
    let (reached, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    // All is read, and nothing is applied.
    let proxy = fixture.through(held_at(&fixture.proxy, REQUESTS / 2 + 1, reached.clone(), go.clone()));
    let running = tokio::spawn(async move { proxy.run(&of_generation(1)).await });
    reached.notified().await;
    let deleted = fixture.stateful_set().await.metadata.uid;
    fixture.test.api::<StatefulSet>().delete("files", &DeleteParams::default()).await.unwrap();
    let recording = fixture.proxy.record();
    go.notify_one();
    let server = running.await.unwrap().unwrap();
    assert_ne!(server.stateful_set().metadata.uid, deleted);
    assert_eq!(image(server.stateful_set()), "files:1");
    // The first one is a conflict: the object that was read has been deleted.
    let writes = recording.writes().await;
    assert_eq!(writes.len(), 4, "{writes:?}");
}
