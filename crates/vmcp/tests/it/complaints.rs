//! What users of such gateways complain of. Each is shown not to happen here: see docs/virtual-servers.md.

use std::time::Duration;

use serde_json::{Value, json};

use crate::{
    Server,
    backend::{Backend, Mood, tool},
    client::{Client, text},
    until,
};

#[tokio::test]
async fn a_call_is_one_request_to_the_backend() {
    let backend = Backend::start().await;
    let server = Server::before(&[("a", &backend)], "").await;
    let client = server.client().await;
    client.call("a_echo").await;
    backend.forget();
    for _ in 0..10 {
        assert!(text(&client.call("a_echo").await).0.starts_with("\"echo\""));
    }
    assert_eq!(backend.received("tools/call").len(), 10);
    let others: usize =
        ["initialize", "tools/list", "ping", "DELETE"].map(|name| backend.received(name).len()).iter().sum();
    assert_eq!(others, 0);
}

#[tokio::test]
async fn every_page_of_a_backend_is_read() {
    let names: Vec<String> = (10..60).map(|number| format!("t{number}")).collect();
    let backend = Backend::with_tools(names.iter().map(|name| tool(name)).collect()).await;
    backend.separate_tools();
    let server = Server::before(&[("a", &backend)], "").await;
    let expected: Vec<String> = names.iter().map(|name| format!("a_{name}")).collect();
    assert_eq!(server.client().await.tools().await, expected);
}

/// As many as docs/security.md says.
const ITEMS: usize = 20_000;

#[tokio::test]
async fn a_backend_with_very_many_items_is_left_out_and_hurts_no_other() {
    let items = |count: usize| (0..count).map(|number| tool(&format!("t{number}"))).collect();
    let (many, good) = (Backend::with_tools(items(ITEMS + 1)).await, Backend::start().await);
    let server = Server::before(&[("bad", &many), ("good", &good)], "").await;
    // On a busy machine, both may take long to be read.
    let is_known = |server: &Server, name: &str| {
        let states = server.server.backend_states();
        let is_known = |state: &Value| state["status"] != "unknown" || state["message"].is_string();
        states.iter().any(|state| state["name"] == name && is_known(state))
    };
    until(|| is_known(&server, "bad") && is_known(&server, "good")).await;
    assert_eq!(server.client().await.tools().await, ["good_echo", "good_last", "good_whoami"]);
    // One of its lists has a resource.
    many.set_tools(items(ITEMS - 1));
    let server = Server::before(&[("bad", &many), ("good", &good)], "").await;
    until(|| is_known(&server, "bad") && is_known(&server, "good")).await;
    assert_eq!(server.client().await.tools().await.len(), 1_000, "the first page");
}

#[tokio::test]
async fn a_backend_whose_pages_never_end_is_left_out_and_hurts_no_other() {
    let (endless, good) = (Backend::start().await, Backend::start().await);
    endless.set(Mood::EndlessPages);
    let server = Server::before(&[("bad", &endless), ("good", &good)], "").await;
    assert_eq!(server.client().await.tools().await, ["good_echo", "good_last", "good_whoami"]);
    assert!((2..=1_001).contains(&endless.received("tools/list").len()));
}

#[tokio::test]
async fn a_backend_whose_lists_have_too_many_bytes_is_left_out_and_hurts_no_other() {
    let described = |number| json!({"name": format!("t{number}"), "inputSchema": {"type": "object"}, "description": "x".repeat(1 << 20)});
    let large = Backend::with_tools((0..8).map(described).collect()).await;
    let good = Backend::start().await;
    let server = Server::before(&[("bad", &large), ("good", &good)], "").await;
    assert_eq!(server.client().await.tools().await, ["good_echo", "good_last", "good_whoami"]);
    large.set_tools((0..7).map(described).collect());
    assert_eq!(
        Server::before(&[("bad", &large)], "").await.client().await.tools().await.len(),
        4,
        "the first page has enough bytes"
    );
}

#[tokio::test]
async fn callers_never_share_a_session_at_a_backend() {
    let backend = Backend::start().await;
    let server = Server::before(&[("a", &backend)], "").await;
    let (one, other) = (server.client().await, server.client().await);
    let [first, second, again] =
        [one.call("a_whoami").await, other.call("a_whoami").await, one.call("a_whoami").await];
    assert_ne!(text(&first), text(&second));
    assert_eq!(text(&first), text(&again));
}

/// Requests that wait for a backend that hangs take 5 s at least.
const SOON: Duration = Duration::from_secs(4);

#[tokio::test]
async fn a_slow_backend_delays_neither_initialize_nor_calls_of_others() {
    let (slow, good) = (Backend::start().await, Backend::start().await);
    slow.set(Mood::Hangs);
    // Where headers are passed on, the lists of backends are those of single callers.
    for more in ["", "passthroughHeaders: [X-Tenant]\n"] {
        let server = Server::before(&[("bad", &slow), ("good", &good)], more).await;
        let calls = async {
            for client in [server.client().await, Client::modern(server.address, json!({}))] {
                for _ in 0..3 {
                    assert!(text(&client.call("good_echo").await).0.starts_with("\"echo\""));
                }
            }
        };
        tokio::time::timeout(SOON, calls).await.expect(more);
    }
}

#[tokio::test]
async fn lists_wait_once_for_a_backend_that_hangs() {
    let (slow, good) = (Backend::start().await, Backend::start().await);
    let server = Server::before(&[("bad", &slow), ("good", &good)], "passthroughHeaders: [X-Tenant]\n").await;
    assert_eq!(server.client().await.tools().await.len(), 6);
    slow.set(Mood::Hangs);
    let client = server.client().await;
    client.tools().await;
    let requests = slow.requests();
    let others = async {
        client.tools().await;
        client.call("bad_nothing").await;
        client.tools().await
    };
    assert_eq!(tokio::time::timeout(SOON, others).await.unwrap().len(), 6);
    assert_eq!(slow.requests(), requests);
}

#[tokio::test]
async fn a_backend_that_hangs_while_its_session_is_opened_delays_nothing_for_others() {
    let (bad, good) = (Backend::start().await, Backend::start().await);
    let server = Server::before(&[("bad", &bad), ("good", &good)], "").await;
    let client = server.client().await;
    assert_eq!(client.tools().await.len(), 6);
    bad.set(Mood::Hangs);
    let hanging = client.call("bad_echo");
    let others = async {
        crate::until(|| bad.received("initialize").len() >= 2).await;
        client.call("good_echo").await;
        client.request("logging/setLevel", json!({"level": "info"})).await;
        assert_eq!(client.send(http::Method::GET, None).await.status(), http::StatusCode::OK);
    };
    tokio::select! {
        _ = hanging => panic!("the backend responded"),
        done = tokio::time::timeout(std::time::Duration::from_secs(8), others) => done.unwrap(),
    }
}

#[tokio::test]
async fn a_backend_that_rejects_the_caller_is_named_and_others_are_shown() {
    let (strict, good) = (Backend::start().await, Backend::start().await);
    let server = Server::before(&[("strict", &strict), ("good", &good)], "").await;
    let client = server.client().await;
    assert_eq!(client.tools().await.len(), 6);
    strict.set(Mood::Status(401));
    let failed = client.call("strict_echo").await;
    assert_eq!(
        text(&failed),
        ("backend strict: it rejects the credentials of this request, or needs some (HTTP 401)", true)
    );
    assert!(!text(&client.call("good_echo").await).1);
    for client in [client, server.client().await] {
        let tools = client.tools().await;
        assert!(tools.iter().any(|tool| tool == "good_echo"), "{tools:?}");
    }
}

#[tokio::test]
async fn a_tool_that_no_backend_has_is_an_error_that_names_it() {
    let backend = Backend::start().await;
    let server = Server::before(&[("a", &backend)], "").await;
    let unknown = server.client().await.request("tools/call", json!({"name": "a_nothing"})).await;
    assert_eq!(unknown["error"], json!({"code": -32602, "message": "unknown tool \"a_nothing\""}));
}
