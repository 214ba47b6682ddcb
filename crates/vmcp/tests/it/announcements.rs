//! list_changed: to clients whose own view of a list has changed, and to no others.

use serde_json::{Value, json};

use crate::{
    Server,
    backend::{Backend, Mood, tool},
    client::{Client, Events},
    until,
};

/// One failed check is enough. A new session has backends checked.
const CHECKS: &str = "operational: {failureHandling: {unhealthyThreshold: 1}}\n";

fn tools_changed() -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
}

/// A client that has seen the tools, and listens.
async fn listening(server: &Server) -> (Client, Vec<String>, Events) {
    let client = server.client().await;
    let tools = client.tools().await;
    let events = client.listen().await;
    (client, tools, events)
}

/// All messages of a stream, which ends with its session.
async fn all(client: &Client, mut events: Events) -> Vec<Value> {
    client.end().await;
    let mut messages = Vec::new();
    while let Some(message) = events.next().await {
        messages.push(message);
    }
    messages
}

/// Has changed tools read, as a new session does.
async fn have_tools_read(server: &Server, backend: &Backend) {
    let before = backend.received("tools/list").len();
    // Lists are used for a second without checking.
    until_async(async || {
        server.client().await.tools().await;
        backend.received("tools/list").len() > before
    })
    .await;
}

async fn until_async(mut is_so: impl AsyncFnMut() -> bool) {
    while !is_so().await {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_member_that_comes_or_leaves_is_announced() {
    let (one, two) = (Backend::start().await, Backend::start().await);
    let server = Server::before(&[("a", &one)], "").await;
    let (client, tools, mut events) = listening(&server).await;
    assert_eq!(tools.len(), 3);
    server.set_backends(&[("a", &one), ("b", &two)]);
    assert_eq!(events.next().await, Some(tools_changed()));
    assert_eq!(client.tools().await.len(), 6);
    server.set_backends(&[("b", &two)]);
    assert_eq!(events.next().await, Some(tools_changed()));
    assert_eq!(client.tools().await, ["b_echo", "b_last", "b_whoami"]);
    assert_eq!(all(&client, events).await, [] as [Value; 0], "each was announced once");
}

#[tokio::test]
async fn a_client_of_2026_hears_of_a_member_that_comes() {
    let (one, two) = (Backend::start().await, Backend::start().await);
    let server = Server::before(&[("a", &one)], "").await;
    let client = Client::modern(server.address, json!({}));
    assert_eq!(client.tools().await.len(), 3);
    let wanted = json!({"notifications": {"toolsListChanged": true}});
    let mut events = client.open("subscriptions/listen", wanted).await;
    assert_eq!(events.next().await.unwrap()["method"], "notifications/subscriptions/acknowledged");
    server.set_backends(&[("a", &one), ("b", &two)]);
    assert_eq!(events.next().await.unwrap()["method"], "notifications/tools/list_changed");
}

#[tokio::test]
async fn a_client_of_2026_sees_the_backends_that_are_available() {
    let (good, flapping) = (Backend::start().await, Backend::start().await);
    let server = Server::before(&[("a", &good), ("b", &flapping)], CHECKS).await;
    let client = Client::modern(server.address, json!({}));
    assert_eq!(client.tools().await.len(), 6);
    let seen = async || server.client().await.tools().await.len();
    flapping.set(Mood::Status(503));
    until_async(async || seen().await == 3).await;
    assert_eq!(client.tools().await.len(), 3);
    let error = client.call("b_echo").await.to_string();
    assert!(error.contains("503"), "the tool is known all the same: {error}");
    flapping.set(Mood::Good);
    until_async(async || seen().await == 6).await;
    assert_eq!(client.tools().await.len(), 6);
}

#[tokio::test]
async fn a_call_between_a_change_and_its_announcement_does_not_swallow_it() {
    let (one, two) = (Backend::start().await, Backend::start().await);
    let server = Server::before(&[("a", &one)], "").await;
    let client = server.client().await;
    assert_eq!(client.tools().await.len(), 3);
    server.set_backends(&[("a", &one), ("b", &two)]);
    until(|| !two.received("resources/list").is_empty()).await;
    // The call finds the new tool, of which the client has not heard.
    until_async(async || client.call("b_echo").await.get("result").is_some()).await;
    let mut events = client.listen().await;
    assert_eq!(events.next().await, Some(tools_changed()));
}

#[tokio::test]
async fn a_backend_that_is_back_is_announced_to_those_who_were_not_shown_it() {
    let (good, flapping) = (Backend::start().await, Backend::start().await);
    let server = Server::before(&[("a", &good), ("b", &flapping)], CHECKS).await;
    let (before, tools, events_before) = listening(&server).await;
    assert_eq!(tools.len(), 6);
    flapping.set(Mood::Status(503));
    let seen = async || server.client().await.tools().await.len();
    until_async(async || seen().await == 3).await;
    let (during, tools, mut events_during) = listening(&server).await;
    assert_eq!(tools.len(), 3);
    flapping.set(Mood::Good);
    until_async(async || seen().await == 6).await;
    assert_eq!(events_during.next().await, Some(tools_changed()));
    assert_eq!(during.tools().await.len(), 6);
    assert_eq!(before.tools().await, during.tools().await);
    assert_eq!(all(&before, events_before).await, [] as [Value; 0], "it has seen the same all the time");
}

#[tokio::test]
async fn a_change_that_policies_hide_is_not_announced() {
    let (open, hidden) = (Backend::start().await, Backend::start().await);
    let policy = r#"permit(principal, action, resource) when { resource.name like "a_*" };"#;
    let auth =
        format!("incomingAuth: {{type: anonymous, authz: {{type: cedar, policies: {}}}}}", json!([policy]));
    let config = Server::config(&[("a", open.url()), ("b", hidden.url())], "");
    let server = Server::of(&config.replace("incomingAuth: {type: anonymous}", &auth), None, None).await;
    let (client, tools, mut events) = listening(&server).await;
    assert_eq!(tools, ["a_echo", "a_last", "a_whoami"]);
    hidden.set_tools(vec![tool("secret")]);
    have_tools_read(&server, &hidden).await;
    open.set_tools(vec![tool("one")]);
    have_tools_read(&server, &open).await;
    assert_eq!(events.next().await, Some(tools_changed()));
    assert_eq!(client.tools().await, ["a_one"]);
    assert_eq!(all(&client, events).await, [] as [Value; 0], "one of two changes was for this client");
}

/// The backend has other tools for this caller, and the same for the virtual server itself.
async fn announces_to_one_caller(backend: Backend) {
    backend.allow_streams();
    backend.set_tools_of("red", &["one"]);
    let server = Server::before(&[("a", &backend)], "passthroughHeaders: [X-Tenant]\n").await;
    let client = Client::without_session(server.address).with_header("x-tenant", "red");
    let client = client.started(json!({})).await;
    let mut events = client.listen().await;
    assert_eq!(client.tools().await, ["a_one"]);
    // That of the virtual server itself, and that of the client.
    until(|| backend.streams().len() == 2).await;
    backend.set_tools_of("red", &["two"]);
    backend.send(&tools_changed(), &backend.streams());
    assert_eq!(events.next().await, Some(tools_changed()));
    assert_eq!(client.tools().await, ["a_two"]);
    // What it announces without a change is not passed on.
    backend.send(&tools_changed(), &backend.streams());
    backend.set_tools_of("red", &["three"]);
    backend.send(&tools_changed(), &backend.streams());
    assert_eq!(events.next().await, Some(tools_changed()));
}

#[tokio::test]
async fn a_change_for_one_caller_is_announced_to_it() {
    announces_to_one_caller(Backend::start().await).await;
}

#[tokio::test]
async fn a_change_for_one_caller_of_a_backend_of_2026_is_announced_to_it() {
    announces_to_one_caller(Backend::modern().await).await;
}
