//! Who gets what the server sends: whom it concerns, and no stranger.

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

/// Answers everything but `wait`, which a test answers.
fn fake() -> Fake {
    Fake::new(|heard| match (heard.method(), heard.json.get("id")) {
        ("wait", _) | (_, None) | ("", _) => Vec::new(),
        _ => vec![heard.result("{}")],
    })
}

fn waiting(id: Value, params: Value) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": "wait", "params": params}).to_string()
}

/// Something that all who listen get, to see that nothing came before.
fn marker() -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
}

#[tokio::test]
async fn progress_goes_to_whoever_asked_under_their_own_token() {
    let fake = fake();
    let fixture = fake.proxied().await;
    let (one, two) = (Client::new(&fixture).await, Client::new(&fixture).await);
    let (mut others, mut own) = (two.listen().await, one.listen().await);
    let meta = json!({"_meta": {"progressToken": "t-1"}});
    let mut asked = one.stream(&waiting(json!("a"), meta.clone())).await;
    // The same token is another one in another session.
    let mut other = two.stream(&waiting(json!("a"), meta)).await;
    fake.heard_where(|heard| heard.json["id"] == 3).await;
    let numbers: Vec<_> = fake
        .heard()
        .iter()
        .filter(|heard| heard.method() == "wait")
        .map(|heard| heard.json["id"].clone())
        .collect();
    assert_eq!(numbers.len(), 2);
    for (number, done) in [(&numbers[1], 2), (&numbers[0], 1)] {
        fake.say(notification("progress", json!({"progressToken": number, "progress": done})));
        fake.say(notification("progress", json!({"progressToken": 999, "progress": done})));
        fake.act(Act::Say(json!({"jsonrpc": "2.0", "id": number, "result": {"done": done}}).to_string()));
    }
    for (stream, done) in [(&mut asked, 1), (&mut other, 2)] {
        stream.expect(notification("progress", json!({"progressToken": "t-1", "progress": done}))).await;
        stream.expect(json!({"jsonrpc": "2.0", "id": "a", "result": {"done": done}})).await;
        assert_eq!(stream.next().await, None);
    }
    fake.say(marker());
    others.expect(marker()).await;
    own.expect(marker()).await;
}

#[tokio::test]
async fn changes_of_a_resource_go_to_subscribers_and_the_server_hears_of_the_first_and_the_last() {
    let fake = fake();
    let fixture = fake.proxied().await;
    let (one, two, three) =
        (Client::new(&fixture).await, Client::new(&fixture).await, Client::new(&fixture).await);
    let (mut first, mut second, mut third) = (one.listen().await, two.listen().await, three.listen().await);
    let uri = json!({"uri": "file:///a"});
    for client in [&one, &two] {
        assert_eq!(client.call("resources/subscribe", uri.clone()).await["result"], json!({}));
    }
    let changed = notification("resources/updated", json!({"uri": "file:///a/part"}));
    fake.say(changed.clone());
    fake.say(marker());
    for stream in [&mut first, &mut second] {
        stream.expect(changed.clone()).await;
        stream.expect(marker()).await;
    }
    third.expect(marker()).await;
    // A stranger cannot end what others have.
    three.call("resources/unsubscribe", uri.clone()).await;
    one.call("resources/unsubscribe", uri.clone()).await;
    fake.say(changed.clone());
    second.expect(changed).await;
    let header = [("mcp-session-id", two.session.as_str())];
    assert_eq!(fixture.send(Method::DELETE, "/mcp", &header, b"").await.status, StatusCode::NO_CONTENT);
    assert_eq!(fake.heard_method("resources/unsubscribe").await.json["params"], uri);
    assert_eq!(second.next().await, None, "the stream ends with its session");
    let count = |method: &str| fake.methods().iter().filter(|heard| *heard == method).count();
    assert_eq!((count("resources/subscribe"), count("resources/unsubscribe")), (1, 1));
}

#[tokio::test]
async fn log_messages_go_to_those_who_want_them_and_what_is_nobodys_to_nobody() {
    let fake = fake();
    let fixture = fake.proxied().await;
    let one = Client::new(&fixture).await;
    let mut first = one.listen().await;
    let log = |level: &str| notification("message", json!({"level": level, "data": "x"}));
    fake.say(log("debug"));
    first.expect(log("debug")).await;

    let two = Client::new(&fixture).await;
    let mut second = two.listen().await;
    fake.say(log("error"));
    fake.say(notification("tasks/status", json!({"taskId": "t"})));
    fake.say(notification("new/thing", json!({})));
    fake.say(marker());
    first.expect(marker()).await;
    second.expect(marker()).await;

    one.call("logging/setLevel", json!({"level": "debug"})).await;
    two.call("logging/setLevel", json!({"level": "error"})).await;
    for level in ["info", "error"] {
        fake.say(log(level));
        first.expect(log(level)).await;
    }
    second.expect(log("error")).await;
    let levels: Vec<_> =
        fake.heard().into_iter().filter(|heard| heard.method() == "logging/setLevel").collect();
    assert_eq!(levels[1].json["params"]["level"], "debug", "the server goes on telling what the first wants");
}

#[tokio::test]
async fn a_question_goes_to_the_session_that_is_served_and_only_it_can_answer() {
    let fake = fake();
    let fixture = fake.proxied().await;
    let (one, two) = (Client::new(&fixture).await, Client::new(&fixture).await);
    let mut others = two.listen().await;
    let mut asked = one.stream(&waiting(json!(1), json!({}))).await;
    fake.heard_method("wait").await;
    let question = |id: Value| json!({"jsonrpc": "2.0", "id": id, "method": "sampling/createMessage", "params": {"x": 1}});
    fake.say(question(json!("q")));
    let got = asked.next().await.unwrap();
    assert_eq!(got["params"], json!({"x": 1}));
    let answer =
        |text: &str| json!({"jsonrpc": "2.0", "id": got["id"], "result": {"text": text}}).to_string();
    for (client, text) in [(&two, "forged"), (&one, "true"), (&one, "again")] {
        assert_eq!(client.post(&answer(text)).await.status, StatusCode::ACCEPTED);
    }
    let number = fake.heard_method("wait").await.json["id"].clone();
    fake.say(json!({"jsonrpc": "2.0", "id": number, "result": {}}));
    asked.expect(json!({"jsonrpc": "2.0", "id": 1, "result": {}})).await;
    let told: Vec<_> = fake.heard().into_iter().filter(|heard| heard.json["id"] == "q").collect();
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].json, json!({"jsonrpc": "2.0", "id": "q", "result": {"text": "true"}}));
    fake.say(marker());
    others.expect(marker()).await;
}

#[tokio::test]
async fn a_question_that_could_be_for_several_or_for_nobody_is_answered_here() {
    let fake = fake();
    let fixture = fake.proxied().await;
    let (one, two) = (Client::new(&fixture).await, Client::able(&fixture, json!({"elicitation": {}})).await);
    let question = |id: &str, method: &str| json!({"jsonrpc": "2.0", "id": id, "method": method});
    let unknown = |id: &str| json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "Method not found"}});
    let answered = async |id: &str| fake.heard_where(|heard| heard.json["id"] == id).await.json;

    fake.say(question("nobody", "roots/list"));
    assert_eq!(answered("nobody").await, unknown("nobody"));
    fake.say(question("ping", "ping"));
    assert_eq!(answered("ping").await, json!({"jsonrpc": "2.0", "id": "ping", "result": {}}));

    let _second = two.stream(&waiting(json!(1), json!({}))).await;
    fake.heard_method("wait").await;
    fake.say(question("unable", "roots/list"));
    assert_eq!(answered("unable").await, unknown("unable"), "this client did not say that it has any");

    let _first = one.stream(&waiting(json!(1), json!({}))).await;
    fake.heard_where(|heard| heard.method() == "wait" && heard.json["id"] == 3).await;
    fake.say(question("several", "elicitation/create"));
    assert_eq!(answered("several").await, unknown("several"));
}

#[tokio::test]
async fn a_request_is_cancelled_by_its_own_client_under_the_number_that_the_server_knows() {
    let fake = fake();
    let fixture = fake.proxied().await;
    let (one, two) = (Client::new(&fixture).await, Client::new(&fixture).await);
    let mut asked = one.stream(&waiting(json!("a"), json!({}))).await;
    let number = fake.heard_method("wait").await.json["id"].clone();
    let cancel = notification("cancelled", json!({"requestId": "a", "reason": "r", "_meta": {"k": 1}}));
    two.post(&cancel.to_string()).await;
    one.post(&cancel.to_string()).await;
    let heard: Vec<_> =
        fake.heard().into_iter().filter(|heard| heard.method() == "notifications/cancelled").collect();
    assert_eq!(heard.len(), 1);
    assert_eq!(heard[0].json["params"], json!({"requestId": number, "reason": "r", "_meta": {"k": 1}}));
    assert_eq!(asked.next().await, None);
}

#[tokio::test]
async fn a_session_is_known_until_it_ends_and_has_one_stream() {
    let fake = fake();
    let fixture = fake.proxied().await;
    let client = Client::new(&fixture).await;
    let mut old = client.listen().await;
    let mut new = client.listen().await;
    assert_eq!(old.next().await, None);
    fake.say(marker());
    new.expect(marker()).await;

    let header = [("mcp-session-id", client.session.as_str()), ("accept", "text/event-stream")];
    assert_eq!(fixture.send(Method::DELETE, "/mcp", &header, b"").await.status, StatusCode::NO_CONTENT);
    assert_eq!(new.next().await, None);
    let gone = client.post(&call("ping", json!({}))).await;
    assert_eq!((gone.status, gone.json()["error"]["code"].clone()), (StatusCode::NOT_FOUND, json!(-32001)));
    assert_eq!(fixture.send(Method::GET, "/mcp", &header, b"").await.status, StatusCode::NOT_FOUND);
    assert_eq!(fixture.send(Method::DELETE, "/mcp", &header, b"").await.status, StatusCode::NOT_FOUND);
    assert_eq!(fixture.send(Method::GET, "/mcp", &header[1..], b"").await.status, StatusCode::BAD_REQUEST);
    assert_eq!(fixture.send(Method::PUT, "/mcp", &[], b"").await.status, StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(fixture.send(Method::GET, "/other", &[], b"").await.status, StatusCode::NOT_FOUND);
    assert!(!fake.methods().contains(&"ping".to_owned()));
}
