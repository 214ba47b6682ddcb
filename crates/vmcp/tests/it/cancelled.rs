//! Requests that clients give up, and those that the virtual server does: backends of the older era learn it.

use std::time::{Duration, Instant};

use http::Method;
use serde_json::{Value, json};
use skep_testkit::Redis;

use crate::{
    Server,
    backend::{Backend, Mood},
    client::{Client, text},
    scripted::{Received, Scripted, Speaks},
    until,
};

fn params() -> Value {
    json!({"name": "a_ask", "arguments": {}})
}

async fn cancel(client: &Client) {
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    assert_eq!(client.send(Method::POST, Some(&cancel)).await.status(), 202);
}

/// The backend is told that this request is cancelled.
async fn is_told(backend: &Scripted, call: &Received) {
    let told = backend.next("notifications/cancelled").await;
    assert_eq!(told.message["params"]["requestId"], call.message["id"]);
}

#[tokio::test]
async fn a_backend_learns_that_a_client_of_2026_has_closed_its_response() {
    let backend = Scripted::start(Speaks::Legacy).await;
    let server = Server::with_urls(&[("a", backend.url())], "", None).await;
    let client = Client::modern(server.address, json!({}));
    let call = tokio::select! {
        _ = client.request("tools/call", params()) => panic!("it has no response"),
        call = backend.next("tools/call") => call,
    };
    is_told(&backend, &call).await;
}

#[tokio::test]
async fn a_backend_learns_that_its_time_has_passed() {
    let backend = Scripted::start(Speaks::Legacy).await;
    let times = "operational: {timeouts: {default: 500ms}}\n";
    let server = Server::with_urls(&[("a", backend.url())], times, None).await;
    let client = server.client().await;
    let (failed, call) = tokio::join!(client.request("tools/call", params()), backend.next("tools/call"));
    assert!(text(&failed).0.contains("it sent nothing within"), "{failed}");
    is_told(&backend, &call).await;
}

#[tokio::test]
async fn a_backend_learns_of_a_cancellation_before_its_response_begins() {
    let backend = Backend::start().await;
    let flow = "compositeTools: [{name: flow, description: d, steps: [{id: s, tool: a_echo}]}]\n";
    let server = Server::before(&[("a", &backend)], flow).await;
    let client = server.client().await;
    assert!(!text(&client.call("flow").await).1);
    backend.set(Mood::Hangs);
    let started = Instant::now();
    for tool in ["a_echo", "flow"] {
        backend.forget();
        let cancelled = async {
            until(|| backend.called().len() == 1).await;
            cancel(&client).await;
        };
        let (response, ()) = tokio::join!(client.call(tool), cancelled);
        assert!(text(&response).0.contains("cancelled"), "{response}");
        until(|| backend.received("notifications/cancelled").len() == 1).await;
    }
    assert!(started.elapsed() < Duration::from_secs(10), "the client has waited for the backend that hangs");
}

/// A call that is cancelled while its session at the backend is opened.
async fn call_and_cancel(client: &Client, backend: &Backend) {
    let before = backend.received("initialize").len();
    let cancelled = async {
        until(|| backend.received("initialize").len() > before).await;
        cancel(client).await;
    };
    let (response, ()) = tokio::join!(client.call("a_echo"), cancelled);
    assert!(text(&response).0.contains("cancelled"), "{response}");
}

#[tokio::test]
async fn a_call_that_is_cancelled_while_its_session_is_opened_is_not_sent_and_leaves_the_session_to_the_next()
{
    let backend = Backend::start().await;
    let server = Server::before(&[("a", &backend)], "").await;
    let client = server.client().await;
    assert_eq!(client.tools().await.len(), 3);
    let before = backend.received("initialize").len();
    backend.hold_sessions(true);
    call_and_cancel(&client, &backend).await;
    backend.hold_sessions(false);
    assert!(!text(&client.call("a_whoami").await).1);
    assert_eq!(backend.called(), ["whoami"]);
    assert_eq!(backend.received("initialize").len(), before + 1);
}

#[tokio::test]
async fn a_session_at_a_backend_that_is_opened_as_that_of_the_client_ends_is_ended_there() {
    let backend = Backend::start().await;
    let server = Server::before(&[("a", &backend)], "").await;
    let client = server.client().await;
    assert_eq!(client.tools().await.len(), 3);
    backend.hold_sessions(true);
    call_and_cancel(&client, &backend).await;
    client.end().await;
    backend.hold_sessions(false);
    until(|| backend.received("DELETE").len() == 2 && backend.sessions() == 0).await;
}

#[tokio::test]
async fn of_sessions_that_are_opened_as_those_of_clients_end_a_bounded_number_is_awaited() {
    const PLACES: usize = 256;
    let backend = Backend::start().await;
    let server = Server::before(&[("a", &backend)], "").await;
    let kept = server.client().await;
    assert!(!text(&kept.call("a_echo").await).1);
    backend.forget();
    backend.hold_sessions(true);
    for _ in 0..PLACES + 4 {
        let client = server.client().await;
        call_and_cancel(&client, &backend).await;
        client.end().await;
    }
    let before = backend.sessions();
    backend.hold_sessions(false);
    until(|| backend.received("DELETE").len() == PLACES && backend.sessions() == before).await;
    assert_eq!(backend.received("notifications/initialized").len(), PLACES);
}

#[tokio::test]
async fn a_cancellation_reaches_a_backend_from_another_replica() {
    let (redis, backend) = (Redis::start().await, Scripted::start(Speaks::Legacy).await);
    let storage = format!("sessionStorage: {{provider: redis, address: \"{}\"}}\n", redis.address());
    let urls = [("a", backend.url())];
    let first = Server::with_urls(&urls, &storage, None).await;
    let second = Server::with_urls(&urls, &storage, None).await;
    let client = first.client().await;
    let script = async {
        let call = backend.next("tools/call").await;
        cancel(&client.at(second.address)).await;
        is_told(&backend, &call).await;
        call.result(json!({"content": []}));
    };
    tokio::join!(client.request("tools/call", params()), script);
}

#[tokio::test]
async fn an_id_cancelled_at_another_replica_is_not_reused_at_the_backend() {
    let (redis, backend) = (Redis::start().await, Scripted::start(Speaks::Legacy).await);
    let storage = format!("sessionStorage: {{provider: redis, address: \"{}\"}}\n", redis.address());
    let urls = [("a", backend.url())];
    let first = Server::with_urls(&urls, &storage, None).await;
    let second = Server::with_urls(&urls, &storage, None).await;
    let client = first.client().await;
    let other = client.at(second.address);
    let script = async {
        let cancelled = backend.next("tools/call").await;
        cancel(&other).await;
        is_told(&backend, &cancelled).await;
        let again = async {
            let call = backend.next("tools/call").await;
            assert_ne!(call.message["id"], cancelled.message["id"]);
            call.result(json!({"content": []}));
        };
        tokio::join!(other.request("tools/call", params()), again);
        cancelled.result(json!({"content": []}));
    };
    tokio::join!(client.request("tools/call", params()), script);
}

#[tokio::test]
async fn an_id_that_a_client_uses_again_for_another_call_is_another_one_at_the_backend() {
    let (redis, backend) = (Redis::start().await, Scripted::start(Speaks::Legacy).await);
    let storage = format!(
        "operational: {{timeouts: {{default: 500ms}}}}\nsessionStorage: {{provider: redis, address: \"{}\"}}\n",
        redis.address()
    );
    let urls = [("a", backend.url())];
    let first = Server::with_urls(&urls, &storage, None).await;
    let second = Server::with_urls(&urls, &storage, None).await;
    let client = first.client().await;
    let mut seen = Vec::new();
    for _ in 0..2 {
        // All calls of this client have the same id.
        let (failed, call) = tokio::join!(client.request("tools/call", params()), backend.next("tools/call"));
        assert!(text(&failed).0.contains("it sent nothing within"), "{failed}");
        is_told(&backend, &call).await;
        seen.push(call.message["id"].clone());
    }
    assert_ne!(seen[0], seen[1]);
    // Other replicas learn it with the session, soon, and can still cancel the call.
    let other = client.at(second.address);
    loop {
        let script = async {
            let call = backend.next("tools/call").await;
            cancel(&client).await;
            is_told(&backend, &call).await;
            call.message["id"].clone()
        };
        let (_, id) = tokio::join!(other.request("tools/call", params()), script);
        if !seen.contains(&id) {
            break;
        }
    }
}

#[tokio::test]
async fn a_call_with_a_response_is_not_cancelled() {
    let backend = Backend::start().await;
    let server = Server::before(&[("a", &backend)], "").await;
    let client = server.client().await;
    for mood in [Mood::Good, Mood::Status(500), Mood::Garbage] {
        backend.set(mood);
        client.call("a_echo").await;
    }
    backend.set(Mood::Good);
    client.call("a_echo").await;
    assert!(backend.received("notifications/cancelled").is_empty());
}
