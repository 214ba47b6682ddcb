//! Sessions of clients, and those that they have at backends.

use std::time::Duration;

use futures::future::join_all;
use http::{Method, StatusCode};
use serde_json::json;

use crate::{
    Server,
    backend::Backend,
    client::{Client, text},
    scripted::{Scripted, Speaks},
    until,
};

#[tokio::test]
async fn a_session_that_a_backend_has_lost_is_opened_again_once_for_all_who_wait() {
    let backend = Backend::start().await;
    let server = Server::before(&[("a", &backend)], "").await;
    let client = server.client().await;
    let before = client.call("a_whoami").await;
    backend.lose_sessions();
    backend.forget();
    let calls = join_all((0..20).map(|_| client.call("a_whoami"))).await;
    let after = text(&calls[0]);
    assert!(!after.1 && after != text(&before), "{calls:?}");
    assert!(calls.iter().all(|call| text(call) == after), "all use one session: {calls:?}");
    // The virtual server's own session is opened again, too.
    assert!(backend.received("initialize").len() <= 2, "{:?}", backend.received("initialize"));
}

#[tokio::test]
async fn the_level_and_subscriptions_are_set_again_in_a_new_session() {
    let backend = Backend::start().await;
    let server = Server::before(&[("a", &backend)], "").await;
    let client = server.client().await;
    client.call("a_echo").await;
    assert_eq!(client.request("logging/setLevel", json!({"level": "info"})).await["result"], json!({}));
    assert_eq!(client.request("resources/subscribe", json!({"uri": "kit://1"})).await["result"], json!({}));
    backend.lose_sessions();
    backend.forget();
    client.call("a_echo").await;
    let session = backend.received("tools/call").pop().unwrap();
    for method in ["logging/setLevel", "resources/subscribe"] {
        assert_eq!(backend.received(method), std::slice::from_ref(&session), "{method}");
    }
}

#[tokio::test]
async fn a_session_ends_its_sessions_at_backends() {
    let backend = Backend::start().await;
    let server = Server::before(&[("a", &backend)], "").await;
    let client = server.client().await;
    client.call("a_echo").await;
    assert!(backend.sessions() >= 1);
    client.end().await;
    until(|| backend.sessions() == 0).await;
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    assert_eq!(client.send(Method::POST, Some(&list)).await.status(), StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_client_that_never_ends_its_session_costs_a_backend_nothing_before_it_is_used_and_expires() {
    let backend = Backend::start().await;
    let server = Server::with_life(&[("a", &backend)], "", Some(Duration::from_secs(3))).await;
    let clients = join_all((0..50).map(|_| server.client())).await;
    // That of the virtual server itself.
    assert!(backend.sessions() <= 1, "{}", backend.sessions());
    join_all(clients.iter().take(10).map(|client| client.call("a_echo"))).await;
    until(|| backend.sessions() == 0).await;
}

#[tokio::test]
async fn a_stranger_cannot_answer_what_a_backend_requested_of_another_client() {
    let backend = Scripted::start(Speaks::Legacy).await;
    let server = Server::with_urls(&[("a", backend.url())], "", None).await;
    let start = || Client::start(server.address, json!({"roots": {}}));
    let (owner, stranger) = (start().await, start().await);
    let done = json!({"content": []});
    let session_of = async |client: &Client| {
        let session = async {
            let call = backend.next("tools/call").await;
            let session = call.session().to_owned();
            call.result(done.clone());
            session
        };
        tokio::join!(client.call("a_ask"), session).1
    };
    let sessions = [session_of(&owner).await, session_of(&stranger).await];
    let asked = async {
        let call = backend.next("tools/call").await;
        call.send(json!({"jsonrpc": "2.0", "id": "r1", "method": "roots/list"}));
        call
    };
    let params = json!({"name": "a_ask", "arguments": {}});
    let (mut events, call) = tokio::join!(owner.open("tools/call", params), asked);
    let question = events.next().await.unwrap();
    let answer = async |client: &Client, name: &str| {
        let result = json!({"roots": [{"uri": "file:///", "name": name}]});
        let response = json!({"jsonrpc": "2.0", "id": question["id"], "result": result});
        assert_eq!(client.send(Method::POST, Some(&response)).await.status(), StatusCode::ACCEPTED);
    };
    answer(&stranger, "stranger").await;
    answer(&owner, "owner").await;
    // At most in its own session, in which nobody asks.
    loop {
        let response = backend.next("").await;
        let name = response.message["result"]["roots"][0]["name"].clone();
        assert_eq!(response.session(), sessions[usize::from(name == "stranger")]);
        if name == "owner" {
            break;
        }
    }
    call.result(done.clone());
    assert!(!text(&events.next().await.unwrap()).1);
}

#[tokio::test]
async fn a_server_that_stops_ends_its_sessions_at_backends() {
    let backend = Backend::start().await;
    let server = Server::before(&[("a", &backend)], "").await;
    let clients = [server.client().await, server.client().await];
    join_all(clients.iter().map(|client| client.call("a_echo"))).await;
    assert!(backend.sessions() >= 2);
    server.stop().await;
    // That of the virtual server itself ends with its process.
    assert!(backend.sessions() <= 1, "{}", backend.sessions());
}
