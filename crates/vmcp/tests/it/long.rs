//! Sessions, streams and calls that last for long.

use std::time::Duration;

use http::{Method, StatusCode};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use skep_testkit::Redis;

use crate::{
    Server,
    backend::{Backend, tool},
    client::{Client, text},
    in_fast_time,
    scripted::{Scripted, Speaks},
    until,
};

fn storage(redis: &Redis) -> String {
    format!("sessionStorage: {{provider: redis, address: \"{}\"}}\n", redis.address())
}

/// How long the only session in Redis still lives if it is not used, in milliseconds.
async fn life(redis: &Redis) -> i64 {
    let client = redis::Client::open(format!("redis://{}/", redis.address())).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let keys: Vec<String> = redis::cmd("KEYS").arg("*").query_async(&mut connection).await.unwrap();
    assert_eq!(keys.len(), 1, "{keys:?}");
    redis::cmd("PTTL").arg(&keys[0]).query_async(&mut connection).await.unwrap()
}

#[tokio::test]
async fn a_session_with_an_open_stream_lives_on_in_redis() {
    let (redis, backend) = (Redis::start().await, Backend::start().await);
    let server = Server::before(&[("a", &backend)], &storage(&redis)).await;
    let client = server.client().await;
    let _stream = client.listen().await;
    let mut last = life(&redis).await;
    let is_renewed = async {
        loop {
            let now = life(&redis).await;
            if now > last {
                return;
            }
            last = now;
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    };
    in_fast_time(is_renewed).await;
}

#[tokio::test]
async fn a_session_that_ends_at_one_replica_ends_at_the_others() {
    let (redis, backend) = (Redis::start().await, Backend::start().await);
    let first = Server::before(&[("a", &backend)], &storage(&redis)).await;
    let second = Server::before(&[("a", &backend)], &storage(&redis)).await;
    let client = first.client().await;
    let mut stream = client.listen().await;
    client.at(second.address).end().await;
    assert_eq!(in_fast_time(stream.next()).await, None);
}

#[tokio::test]
async fn a_call_that_lasts_has_heartbeats() {
    let backend = Scripted::start(Speaks::Legacy).await;
    let flow = "compositeTools: [{name: flow, description: d, steps: [{id: s, tool: a_ask}]}]\n\
                operational: {timeouts: {default: 10m}}\n";
    let server = Server::with_urls(&[("a", backend.url())], flow, None).await;
    let client = server.client().await;
    for name in ["a_ask", "flow"] {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": {}}});
        let (sent, received) = tokio::sync::oneshot::channel();
        let script = async {
            let call = backend.next("tools/call").await;
            received.await.unwrap();
            call.result(json!({"content": []}));
        };
        let called = async {
            let mut body = client.send(Method::POST, Some(&body)).await.into_body();
            let first = body.frame().await.unwrap().unwrap().into_data().unwrap();
            assert_eq!(&first[..], b": alive\n\n", "{name}");
            sent.send(()).unwrap();
            let rest = body.collect().await.unwrap().to_bytes();
            assert!(String::from_utf8_lossy(&rest).contains("\"result\""), "{name}");
        };
        in_fast_time(async { tokio::join!(called, script) }).await;
    }
}

/// The attack: a backend announces changes without pause, so that it is read, and clients are told, without pause.
#[tokio::test]
async fn a_backend_that_announces_without_pause_is_read_now_and_then() {
    const ANNOUNCEMENTS: usize = 100;
    let backend = Backend::with_tools(vec![tool("t0")]).await;
    backend.allow_streams();
    let server = Server::before(&[("a", &backend)], "").await;
    let client = server.client().await;
    assert_eq!(client.tools().await, ["a_t0"]);
    let mut stream = client.listen().await;
    until(|| !backend.streams().is_empty()).await;
    backend.forget();
    let announced = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
    for number in 1..=ANNOUNCEMENTS {
        backend.set_tools(vec![tool(&format!("t{number}"))]);
        backend.send(&announced, &backend.streams());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let last = format!("a_t{ANNOUNCEMENTS}");
    let mut told = 0;
    loop {
        assert_eq!(stream.next().await.unwrap()["method"], "notifications/tools/list_changed");
        told += 1;
        if client.tools().await == [last.as_str()] {
            break;
        }
    }
    let read = backend.received("tools/list").len();
    assert!(told < ANNOUNCEMENTS / 4 && read < ANNOUNCEMENTS / 4, "told {told} times, read {read} times");
}

#[tokio::test]
async fn a_name_that_a_backend_has_twice_is_that_of_its_first_tool() {
    let backend = Backend::with_tools(vec![
        json!({"name": "one", "title": "first", "inputSchema": {"type": "object"}}),
        json!({"name": "one", "title": "second", "inputSchema": {"type": "object"}}),
        tool("two"),
    ])
    .await;
    for (strategy, names) in [("manual", ["one", "two"]), ("priority", ["one", "two"])] {
        let aggregation = format!(
            "aggregation: {{conflictResolution: {strategy}, tools: [{{workload: a}}], \
             conflictResolutionConfig: {{priorityOrder: [a]}}}}\n"
        );
        let config = format!(
            "name: test\ngroupRef: test\nincomingAuth: {{type: anonymous}}\noutgoingAuth: {{source: inline}}\n{aggregation}\
             backends: [{{name: a, url: \"{}\", transport: streamable-http}}]\n",
            backend.url(),
        );
        let server = Server::of(&config, None, None).await;
        let client = server.client().await;
        assert_eq!(client.tools().await, names, "{strategy}");
        let list = client.request("tools/list", json!({})).await;
        assert_eq!(list["result"]["tools"][0]["title"], "first");
    }
}

#[tokio::test]
async fn the_session_at_a_backend_that_another_replaces_is_ended() {
    let (before, after) = (Backend::start().await, Backend::start().await);
    let server = Server::before(&[("a", &before)], "").await;
    let client = server.client().await;
    client.call("a_echo").await;
    let own = before.received("tools/call")[0].clone();
    server.set_backends(&[("a", &after)]);
    assert!(!text(&client.call("a_echo").await).1);
    until(|| before.received("DELETE").contains(&own)).await;
}

/// A workflow whose question an older client has.
async fn asked(client: &Client) -> (crate::client::Events, Value) {
    let mut events = client.open("tools/call", json!({"name": "polite", "arguments": {}})).await;
    let question = events.next().await.unwrap();
    assert_eq!(question["method"], "elicitation/create", "{question}");
    (events, question)
}

#[tokio::test]
async fn a_stream_that_is_resumed_where_it_is_still_open_goes_on() {
    let (redis, backend) = (Redis::start().await, Backend::start().await);
    let polite = "compositeTools: [{name: polite, description: d, steps: [\
                  {id: q, type: elicitation, message: m, schema: {type: object, properties: {}}}, \
                  {id: s, tool: a_echo, dependsOn: [q]}]}]\n";
    let server = Server::before(&[("a", &backend)], &(storage(&redis) + polite)).await;
    let client = Client::start(server.address, json!({"elicitation": {}})).await;
    // The client no longer reads this one, and the server does not know.
    let (lost, question) = asked(&client).await;
    let mut rest = client.listen_after(lost.last_id.as_deref().unwrap()).await;
    let answer =
        json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept", "content": {}}});
    assert_eq!(client.send(Method::POST, Some(&answer)).await.status(), StatusCode::ACCEPTED);
    let result = rest.next().await.unwrap();
    assert!(result["result"]["content"].is_array() && !text(&result).1, "{result}");
    assert_eq!(backend.called(), ["echo"]);
}
