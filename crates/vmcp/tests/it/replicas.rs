//! Replicas that share their sessions in a real Redis.

use std::time::{Duration, Instant};

use http::{Method, StatusCode};
use serde_json::json;
use skep_testkit::Redis;

use crate::{Server, backend::Backend, client::text, until};

fn storage(redis: &Redis) -> String {
    format!("sessionStorage: {{provider: redis, address: \"{}\"}}\n", redis.address())
}

#[tokio::test]
async fn a_session_goes_on_at_another_replica_with_all_it_had() {
    let (redis, backend) = (Redis::start().await, Backend::start().await);
    let first = Server::before(&[("a", &backend)], &storage(&redis)).await;
    let second = Server::before(&[("a", &backend)], &storage(&redis)).await;
    let client = first.client().await;
    let session = text(&client.call("a_whoami").await).0.to_owned();
    assert_eq!(client.request("logging/setLevel", json!({"level": "info"})).await["result"], json!({}));
    assert_eq!(client.request("resources/subscribe", json!({"uri": "kit://1"})).await["result"], json!({}));
    // The first one is killed.
    drop(first);
    let client = client.at(second.address);
    assert_eq!(text(&client.call("a_whoami").await).0, session, "it is the same session at the backend");
    backend.lose_sessions();
    backend.forget();
    client.call("a_echo").await;
    for method in ["logging/setLevel", "resources/subscribe"] {
        assert_eq!(backend.received(method).len(), 1, "{method} was known to the other replica");
    }
}

#[tokio::test]
async fn a_session_that_ends_at_one_replica_has_ended_at_all() {
    let (redis, backend) = (Redis::start().await, Backend::start().await);
    let first = Server::before(&[("a", &backend)], &storage(&redis)).await;
    let second = Server::before(&[("a", &backend)], &storage(&redis)).await;
    let client = first.client().await;
    client.call("a_echo").await;
    client.at(second.address).end().await;
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    assert_eq!(client.send(Method::POST, Some(&ping)).await.status(), StatusCode::NOT_FOUND);
    until(|| backend.sessions() == 0).await;
}

#[tokio::test]
async fn a_replica_that_has_not_seen_a_session_for_long_does_not_end_it() {
    let (redis, backend) = (Redis::start().await, Backend::start().await);
    // Long enough that the machine may stop for seconds between two calls.
    let life = Duration::from_secs(3);
    let first = Server::with_life(&[("a", &backend)], &storage(&redis), Some(life)).await;
    let second = Server::with_life(&[("a", &backend)], &storage(&redis), Some(life)).await;
    let client = first.client().await;
    let session = text(&client.call("a_whoami").await).0.to_owned();
    let client = client.at(second.address);
    // It is used at the other one until the first has removed it from its memory, which it does every half of a life.
    let since = Instant::now();
    while since.elapsed() < life * 2 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert_eq!(text(&client.call("a_whoami").await).0, session);
    }
}

#[tokio::test]
async fn sessions_go_on_while_redis_is_unavailable_and_none_can_start() {
    let (mut redis, backend) = (Redis::start().await, Backend::start().await);
    let server = Server::before(&[("a", &backend)], &storage(&redis)).await;
    let client = server.client().await;
    client.call("a_echo").await;
    redis.kill();
    assert!(!text(&client.call("a_echo").await).1);
    let start = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-11-25",
        "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}});
    let stranger = crate::client::Client::without_session(server.address);
    assert_eq!(stranger.send(Method::POST, Some(&start)).await.status(), StatusCode::SERVICE_UNAVAILABLE);
}
