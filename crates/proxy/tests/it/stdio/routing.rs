//! Routing of the server's messages to the clients that they concern.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::{
    client::Client,
    fake::{Act, Fake},
};
use crate::fixture::call;

fn notification(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "method": format!("notifications/{method}"), "params": params})
}

/// Responds to everything but `wait`, which a test responds to.
fn fake() -> Fake {
    Fake::new(|received| match (received.method(), received.json.get("id")) {
        ("wait", _) | (_, None) | ("", _) => Vec::new(),
        _ => vec![received.result("{}")],
    })
}

fn waiting(id: Value, params: Value) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": "wait", "params": params}).to_string()
}

/// A message to all streams, to check that nothing was sent before.
fn marker() -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
}

#[tokio::test]
async fn progress_is_sent_to_the_client_of_the_request_with_its_token() {
    let fake = fake();
    let fixture = fake.proxy().await;
    let (one, two) = (Client::new(&fixture).await, Client::new(&fixture).await);
    let (mut others, mut own) = (two.listen().await, one.listen().await);
    let meta = json!({"_meta": {"progressToken": "t-1"}});
    let mut first = one.stream(&waiting(json!("a"), meta.clone())).await;
    // The same token is another one in another session.
    let mut other = two.stream(&waiting(json!("a"), meta)).await;
    fake.received_where(|received| received.json["id"] == 3).await;
    let numbers: Vec<_> = fake
        .received()
        .iter()
        .filter(|received| received.method() == "wait")
        .map(|received| received.json["id"].clone())
        .collect();
    assert_eq!(numbers.len(), 2);
    for (number, done) in [(&numbers[1], 2), (&numbers[0], 1)] {
        fake.send(notification("progress", json!({"progressToken": number, "progress": done})));
        fake.send(notification("progress", json!({"progressToken": 999, "progress": done})));
        fake.act(Act::Send(json!({"jsonrpc": "2.0", "id": number, "result": {"done": done}}).to_string()));
    }
    for (stream, done) in [(&mut first, 1), (&mut other, 2)] {
        stream.expect(notification("progress", json!({"progressToken": "t-1", "progress": done}))).await;
        stream.expect(json!({"jsonrpc": "2.0", "id": "a", "result": {"done": done}})).await;
        assert_eq!(stream.next().await, None);
    }
    fake.send(marker());
    others.expect(marker()).await;
    own.expect(marker()).await;
}

#[tokio::test]
async fn updates_of_a_resource_are_sent_to_subscribers_and_the_server_has_one_subscription() {
    let fake = fake();
    let fixture = fake.proxy().await;
    let (one, two, three) =
        (Client::new(&fixture).await, Client::new(&fixture).await, Client::new(&fixture).await);
    let (mut first, mut second, mut third) = (one.listen().await, two.listen().await, three.listen().await);
    let uri = json!({"uri": "file:///a"});
    for client in [&one, &two] {
        assert_eq!(client.call("resources/subscribe", uri.clone()).await["result"], json!({}));
    }
    let changed = notification("resources/updated", json!({"uri": "file:///a/part"}));
    fake.send(changed.clone());
    fake.send(marker());
    for stream in [&mut first, &mut second] {
        stream.expect(changed.clone()).await;
        stream.expect(marker()).await;
    }
    third.expect(marker()).await;
    // A session cannot end the subscriptions of others.
    three.call("resources/unsubscribe", uri.clone()).await;
    one.call("resources/unsubscribe", uri.clone()).await;
    fake.send(changed.clone());
    second.expect(changed).await;
    let header = [("mcp-session-id", two.session.as_str())];
    assert_eq!(fixture.send(Method::DELETE, "/mcp", &header, b"").await.status, StatusCode::NO_CONTENT);
    assert_eq!(fake.received_method("resources/unsubscribe").await.json["params"], uri);
    assert_eq!(second.next().await, None, "the stream ends with its session");
    let count = |method: &str| fake.methods().iter().filter(|received| *received == method).count();
    assert_eq!((count("resources/subscribe"), count("resources/unsubscribe")), (1, 1));
}

#[tokio::test]
async fn log_messages_are_sent_by_level_and_ambiguous_notifications_to_no_session() {
    let fake = fake();
    let fixture = fake.proxy().await;
    let one = Client::new(&fixture).await;
    let mut first = one.listen().await;
    let log = |level: &str| notification("message", json!({"level": level, "data": "x"}));
    fake.send(log("debug"));
    first.expect(log("debug")).await;

    let two = Client::new(&fixture).await;
    let mut second = two.listen().await;
    fake.send(log("error"));
    fake.send(notification("tasks/status", json!({"taskId": "t"})));
    fake.send(notification("new/thing", json!({})));
    fake.send(marker());
    first.expect(marker()).await;
    second.expect(marker()).await;

    one.call("logging/setLevel", json!({"level": "debug"})).await;
    two.call("logging/setLevel", json!({"level": "error"})).await;
    for level in ["info", "error"] {
        fake.send(log(level));
        first.expect(log(level)).await;
    }
    second.expect(log("error")).await;
    let levels: Vec<_> =
        fake.received().into_iter().filter(|received| received.method() == "logging/setLevel").collect();
    assert_eq!(levels[1].json["params"]["level"], "debug", "the server keeps the lowest level");
}

#[tokio::test]
async fn what_the_server_logs_during_a_request_is_sent_to_no_other_session() {
    let fake = fake();
    let fixture = fake.proxy().await;
    let (one, two) = (Client::new(&fixture).await, Client::new(&fixture).await);
    let (mut first, mut second) = (one.listen().await, two.listen().await);
    for client in [&one, &two] {
        client.call("logging/setLevel", json!({"level": "debug"})).await;
    }
    let log = notification("message", json!({"level": "error", "data": "the arguments of one"}));
    let request = one.stream(&waiting(json!(1), json!({}))).await;
    let number = fake.received_method("wait").await.json["id"].clone();
    fake.send(log.clone());
    first.expect(log.clone()).await;
    fake.send(marker());
    first.expect(marker()).await;
    second.expect(marker()).await;
    // With requests of both, it may be about either; and also after its client has left.
    let _other = two.stream(&waiting(json!(2), json!({}))).await;
    fake.received_where(|received| received.method() == "wait" && received.json["id"] != number).await;
    drop(request);
    fake.send(log);
    fake.send(marker());
    first.expect(marker()).await;
    second.expect(marker()).await;
}

#[tokio::test]
async fn a_request_of_the_server_is_sent_to_the_session_in_flight_and_only_it_can_respond() {
    let fake = fake();
    let fixture = fake.proxy().await;
    let (one, two) = (Client::new(&fixture).await, Client::new(&fixture).await);
    let mut others = two.listen().await;
    let mut first = one.stream(&waiting(json!(1), json!({}))).await;
    fake.received_method("wait").await;
    let request = |id: Value| json!({"jsonrpc": "2.0", "id": id, "method": "sampling/createMessage", "params": {"x": 1}});
    fake.send(request(json!("q")));
    let received = first.next().await.unwrap();
    assert_eq!(received["params"], json!({"x": 1}));
    let answer =
        |text: &str| json!({"jsonrpc": "2.0", "id": received["id"], "result": {"text": text}}).to_string();
    for (client, text) in [(&two, "forged"), (&one, "true"), (&one, "again")] {
        assert_eq!(client.post(&answer(text)).await.status, StatusCode::ACCEPTED);
    }
    let number = fake.received_method("wait").await.json["id"].clone();
    fake.send(json!({"jsonrpc": "2.0", "id": number, "result": {}}));
    first.expect(json!({"jsonrpc": "2.0", "id": 1, "result": {}})).await;
    let responses: Vec<_> =
        fake.received().into_iter().filter(|received| received.json["id"] == "q").collect();
    assert_eq!(responses.len(), 1);
    assert_eq!(responses[0].json, json!({"jsonrpc": "2.0", "id": "q", "result": {"text": "true"}}));
    fake.send(marker());
    others.expect(marker()).await;
}

#[tokio::test]
async fn the_proxy_rejects_a_request_of_the_server_without_a_unique_client() {
    let fake = fake();
    let fixture = fake.proxy().await;
    let (one, two) =
        (Client::new(&fixture).await, Client::with_capabilities(&fixture, json!({"elicitation": {}})).await);
    let request = |id: &str, method: &str| json!({"jsonrpc": "2.0", "id": id, "method": method});
    let unknown = |id: &str| json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "Method not found"}});
    let response = async |id: &str| fake.received_where(|received| received.json["id"] == id).await.json;

    fake.send(request("none", "roots/list"));
    assert_eq!(response("none").await, unknown("none"));
    fake.send(request("ping", "ping"));
    assert_eq!(response("ping").await, json!({"jsonrpc": "2.0", "id": "ping", "result": {}}));

    let _second = two.stream(&waiting(json!(1), json!({}))).await;
    fake.received_method("wait").await;
    fake.send(request("unable", "roots/list"));
    assert_eq!(response("unable").await, unknown("unable"), "this client does not declare the capability");

    let _first = one.stream(&waiting(json!(1), json!({}))).await;
    fake.received_where(|received| received.method() == "wait" && received.json["id"] == 3).await;
    fake.send(request("several", "elicitation/create"));
    assert_eq!(response("several").await, unknown("several"));
}

#[tokio::test]
async fn what_the_server_sends_for_a_client_that_has_left_is_sent_to_no_other() {
    let fake = fake();
    let fixture = fake.proxy().await;
    let (one, two) = (Client::new(&fixture).await, Client::new(&fixture).await);
    let first = one.stream(&waiting(json!(1), json!({}))).await;
    let left = fake.received_method("wait").await.json["id"].clone();
    drop(first);
    let mut second = two.stream(&waiting(json!(1), json!({}))).await;
    fake.received_where(|received| received.method() == "wait" && received.json["id"] != left).await;

    let request = |id: &str| json!({"jsonrpc": "2.0", "id": id, "method": "sampling/createMessage", "params": {"of": id}});
    let unknown = |id: &str| json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "Method not found"}});
    let response = async |id: &str| fake.received_where(|received| received.json["id"] == id).await.json;
    fake.send(request("one"));
    assert_eq!(response("one").await, unknown("one"));
    // An unknown notification that may concern the first client is lost.
    fake.send(json!({"jsonrpc": "2.0", "method": "notifications/custom", "params": {"secret": "of one"}}));
    fake.send(json!({"jsonrpc": "2.0", "id": left, "result": {}}));
    fake.send(request("two"));
    assert_eq!(second.next().await.unwrap()["params"], json!({"of": "two"}), "now there is one client");
}

#[tokio::test]
async fn a_client_that_reads_a_response_too_slowly_loses_it_with_an_error() {
    let fake = fake();
    let fixture = fake.proxy().await;
    let client = Client::new(&fixture).await;
    let meta = json!({"_meta": {"progressToken": "t"}});
    let mut slow = client.stream(&waiting(json!("a"), meta)).await;
    let number = fake.received_method("wait").await.json["id"].clone();
    let text = "x".repeat(64 << 10);
    for done in 0..1_000 {
        fake.send(notification(
            "progress",
            json!({"progressToken": number, "progress": done, "message": text}),
        ));
    }
    let cancelled = fake.received_method("notifications/cancelled").await;
    assert_eq!(cancelled.json["params"], json!({"requestId": number}), "the server stops");
    fake.send(json!({"jsonrpc": "2.0", "id": number, "result": {}}));
    let mut seen = 0;
    let last = loop {
        let message = slow.next().await.unwrap();
        if message.get("id").is_some() {
            break message;
        }
        assert_eq!(message["params"]["progress"], seen, "nothing is missing in between");
        seen += 1;
    };
    assert!(seen < 1_000);
    let message = "the client reads too slowly, and has lost messages";
    assert_eq!(last, json!({"jsonrpc": "2.0", "id": "a", "error": {"code": -32000, "message": message}}));
    assert_eq!(slow.next().await, None);
    assert_eq!(client.call("tools/list", json!({})).await["result"], json!({}), "its session continues");
}

#[tokio::test]
async fn only_its_client_can_cancel_a_request() {
    let fake = fake();
    let fixture = fake.proxy().await;
    let (one, two) = (Client::new(&fixture).await, Client::new(&fixture).await);
    let mut first = one.stream(&waiting(json!("a"), json!({}))).await;
    let number = fake.received_method("wait").await.json["id"].clone();
    let cancel = notification("cancelled", json!({"requestId": "a", "reason": "r", "_meta": {"k": 1}}));
    two.post(&cancel.to_string()).await;
    one.post(&cancel.to_string()).await;
    let received: Vec<_> = fake
        .received()
        .into_iter()
        .filter(|received| received.method() == "notifications/cancelled")
        .collect();
    assert_eq!(received.len(), 1);
    assert_eq!(received[0].json["params"], json!({"requestId": number, "reason": "r", "_meta": {"k": 1}}));
    assert_eq!(first.next().await, None);
}

#[tokio::test]
async fn a_client_can_cancel_a_request_after_it_has_disconnected() {
    let fake = fake();
    let fixture = fake.proxy().await;
    let client = Client::new(&fixture).await;
    let response = client.stream(&waiting(json!("a"), json!({}))).await;
    let number = fake.received_method("wait").await.json["id"].clone();
    drop(response);
    // The proxy answers in place of the client once that has left.
    fake.send(json!({"jsonrpc": "2.0", "id": "left", "method": "roots/list"}));
    fake.received_where(|received| received.json["id"] == "left").await;
    client.post(&notification("cancelled", json!({"requestId": "a"})).to_string()).await;
    let cancelled = fake.received_method("notifications/cancelled").await;
    assert_eq!(cancelled.json["params"]["requestId"], number);
}

#[tokio::test]
async fn a_session_has_one_stream_and_is_unknown_after_its_end() {
    let fake = fake();
    let fixture = fake.proxy().await;
    let client = Client::new(&fixture).await;
    let mut old = client.listen().await;
    let mut new = client.listen().await;
    assert_eq!(old.next().await, None);
    fake.send(marker());
    new.expect(marker()).await;

    let header = [("mcp-session-id", client.session.as_str()), ("accept", "text/event-stream")];
    assert_eq!(fixture.send(Method::DELETE, "/mcp", &header, b"").await.status, StatusCode::NO_CONTENT);
    assert_eq!(new.next().await, None);
    let ended = client.post(&call("ping", json!({}))).await;
    assert_eq!((ended.status, ended.json()["error"]["code"].clone()), (StatusCode::NOT_FOUND, json!(-32001)));
    assert_eq!(fixture.send(Method::GET, "/mcp", &header, b"").await.status, StatusCode::NOT_FOUND);
    assert_eq!(fixture.send(Method::DELETE, "/mcp", &header, b"").await.status, StatusCode::NOT_FOUND);
    assert_eq!(fixture.send(Method::GET, "/mcp", &header[1..], b"").await.status, StatusCode::BAD_REQUEST);
    assert_eq!(fixture.send(Method::PUT, "/mcp", &[], b"").await.status, StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(fixture.send(Method::GET, "/other", &[], b"").await.status, StatusCode::NOT_FOUND);
    assert!(!fake.methods().contains(&"ping".to_owned()));
}
