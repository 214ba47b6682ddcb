//! Backends that fail in every way, one after the other and at random.

use std::time::{Duration, Instant};

use futures::future::join_all;

use crate::{
    Server,
    backend::{Backend, Mood},
    client::text,
};

const TIMES: &str = "operational: {timeouts: {default: 500ms}}\n";

#[tokio::test]
async fn every_failure_of_a_backend_is_an_error_that_names_it() {
    let backend = Backend::start().await;
    let server = Server::before(&[("a", &backend)], TIMES).await;
    let client = server.client().await;
    client.call("a_echo").await;
    for (mood, reason) in [
        (Mood::Hangs, "it sent nothing within 0.5 s"),
        (Mood::Status(500), "it responded with HTTP 500"),
        (Mood::Status(503), "it responded with HTTP 503"),
        (Mood::Status(403), "it rejects the credentials of this request, or needs some (HTTP 403)"),
        (Mood::Garbage, "its response is not a valid MCP message"),
    ] {
        backend.set(mood);
        let failed = client.call("a_echo").await;
        assert_eq!(text(&failed), (&*format!("backend a: {reason}"), true), "{mood:?}");
    }
    backend.set(Mood::Good);
    assert!(!text(&client.call("a_echo").await).1);
}

#[tokio::test]
async fn without_any_backend_a_list_is_an_error_or_empty_as_configured() {
    let backend = Backend::start().await;
    backend.set(Mood::Status(503));
    let handling = |mode: &str| format!("operational: {{failureHandling: {{partialFailureMode: {mode}}}}}\n");
    let server = Server::before(&[("a", &backend)], &handling("fail")).await;
    let list = server.client().await.request("tools/list", serde_json::json!({})).await;
    assert_eq!(list["error"]["message"], "no backend is available: a (backend_unavailable)", "{list}");
    let server = Server::before(&[("a", &backend)], &handling("best_effort")).await;
    assert!(server.client().await.tools().await.is_empty());
}

/// A property: under load, and whatever backends do, every call ends within its time, with the right response or an error
/// that names the backend.
#[tokio::test(flavor = "multi_thread")]
async fn every_call_ends_in_time_with_its_result_or_an_error_that_names_the_backend() {
    let backends = [Backend::start().await, Backend::start().await, Backend::start().await];
    let named = [("a", &backends[0]), ("b", &backends[1]), ("c", &backends[2])];
    let server = Server::before(&named, TIMES).await;
    let clients = join_all((0..6).map(|_| server.client())).await;
    for client in &clients {
        assert_eq!(client.tools().await.len(), 9);
    }
    let moods = [
        Mood::Good,
        Mood::Hangs,
        Mood::Status(404),
        Mood::Garbage,
        Mood::Slow(50),
        Mood::Status(502),
        Mood::Good,
    ];
    let load = clients.iter().enumerate().map(|(number, client)| async move {
        for turn in 0..12 {
            let name = ["a", "b", "c"][(number + turn) % 3];
            let started = Instant::now();
            let response = client.call(&format!("{name}_echo")).await;
            let (words, failed) = text(&response);
            let is_right = if failed {
                words.starts_with(&format!("backend {name}: "))
            } else {
                words.starts_with("\"echo\" s")
            };
            assert!(is_right, "{response}");
            assert!(started.elapsed() < Duration::from_secs(10), "{:?} {response}", started.elapsed());
        }
    });
    let trouble = async {
        for (turn, mood) in moods.iter().cycle().take(21).enumerate() {
            let backend = &backends[turn % 2];
            backend.set(*mood);
            if turn % 4 == 0 {
                backend.lose_sessions();
            }
            tokio::time::sleep(Duration::from_millis(40)).await;
        }
        backends.iter().for_each(|backend| backend.set(Mood::Good));
    };
    tokio::join!(join_all(load), trouble);
    for client in &clients {
        assert!(!text(&client.call("c_echo").await).1, "one that never failed is unharmed");
        assert!(!text(&client.call("a_echo").await).1, "one that is back is used again");
    }
}
