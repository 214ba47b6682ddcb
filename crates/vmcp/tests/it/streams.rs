//! What backends send by themselves: it reaches a client for as long as that listens, whatever happens to streams and sessions.

use std::time::Duration;

use serde_json::{Value, json};
use skep_testkit::Redis;
use tokio::time::timeout;

use crate::{
    Server,
    backend::Backend,
    client::{Client, text},
    until,
};

fn updated() -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": "kit://1"}})
}

/// The client's session at the backend.
async fn session(client: &Client) -> String {
    text(&client.call("a_whoami").await).0.split(' ').next_back().unwrap().to_owned()
}

async fn subscribe(client: &Client) {
    assert_eq!(client.request("resources/subscribe", json!({"uri": "kit://1"})).await["result"], json!({}));
}

/// Waits until the client is listened for in this session, and sends an update.
async fn update(backend: &Backend, session: &str) {
    let session = session.to_owned();
    until(|| backend.streams().contains(&session)).await;
    backend.send(&updated(), &[session]);
}

#[tokio::test]
async fn a_client_that_only_opens_its_stream_at_another_replica_hears_of_updates() {
    let (redis, backend) = (Redis::start().await, Backend::start().await);
    backend.allow_streams();
    let storage = format!("sessionStorage: {{provider: redis, address: \"{}\"}}\n", redis.address());
    let first = Server::before(&[("a", &backend)], &storage).await;
    let second = Server::before(&[("a", &backend)], &storage).await;
    let client = first.client().await;
    let session = session(&client).await;
    subscribe(&client).await;
    // The first one is killed.
    drop(first);
    let mut events = client.at(second.address).listen().await;
    update(&backend, &session).await;
    assert_eq!(events.next().await, Some(updated()));
}

#[tokio::test]
async fn a_new_stream_of_a_session_takes_the_place_of_the_last() {
    let backend = Backend::start().await;
    backend.allow_streams();
    let server = Server::before(&[("a", &backend)], "").await;
    let client = server.client().await;
    let session = session(&client).await;
    subscribe(&client).await;
    let mut silent = client.listen().await;
    update(&backend, &session).await;
    assert_eq!(silent.next().await, Some(updated()));
    let mut events = client.listen().await;
    assert_eq!(silent.next().await, None);
    // The stream of the backend may be that of the last one for a moment.
    let heard = loop {
        update(&backend, &session).await;
        if let Ok(heard) = timeout(Duration::from_millis(100), events.next()).await {
            break heard;
        }
    };
    assert_eq!(heard, Some(updated()));
}

#[tokio::test]
async fn a_stream_of_a_backend_that_breaks_is_opened_again() {
    let backend = Backend::start().await;
    backend.allow_streams();
    let server = Server::before(&[("a", &backend)], "").await;
    let client = server.client().await;
    let session = session(&client).await;
    subscribe(&client).await;
    let mut events = client.listen().await;
    for _ in 0..2 {
        update(&backend, &session).await;
        assert_eq!(events.next().await, Some(updated()));
        backend.break_streams();
    }
}

#[tokio::test]
async fn a_session_that_a_backend_has_lost_is_opened_again_for_a_subscriber_that_listens() {
    let backend = Backend::start().await;
    backend.allow_streams();
    let server = Server::before(&[("a", &backend)], "").await;
    let client = server.client().await;
    let lost = session(&client).await;
    subscribe(&client).await;
    let mut events = client.listen().await;
    update(&backend, &lost).await;
    assert_eq!(events.next().await, Some(updated()));
    backend.forget();
    backend.lose_sessions();
    backend.break_streams();
    until(|| !backend.received("resources/subscribe").is_empty()).await;
    let session = backend.received("resources/subscribe").pop().unwrap();
    assert_ne!(session, lost);
    update(&backend, &session).await;
    assert_eq!(events.next().await, Some(updated()));
}
