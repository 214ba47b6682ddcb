//! Servers that answer what nobody asked for, or in a way that nobody looks into. What a caller may not use is not shown.

use std::time::Duration;

use bytes::Bytes;
use http::{Method, Response, StatusCode};
use serde_json::{Value, json};

use super::judged::policies;
use crate::{
    fixture::{Fixture, Server, call, result},
    stdio::{
        client::{Client, Events, STREAM, send},
        fake::{Act, Fake},
    },
};

const PERMIT: &str = r#"permit(principal, action == Action::"call_tool", resource == Tool::"read");"#;

fn tools() -> Value {
    json!({"tools": [{"name": "read"}, {"name": "SECRET"}], "prompts": [{"name": "SECRET"}],
           "resources": [{"uri": "SECRET", "name": "n"}]})
}

fn list(id: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": tools()})
}

fn typed(status: u16, type_: &str, body: impl Into<Bytes>) -> Response<Bytes> {
    Response::builder().status(status).header("content-type", type_).body(body.into()).unwrap()
}

/// A list, as the server sends it.
fn answer(how: &str, id: &Value) -> Response<Bytes> {
    let events = |messages: &[String]| -> Response<Bytes> {
        typed(
            200,
            "text/event-stream",
            messages.iter().map(|data| format!("data: {data}\n\n")).collect::<String>(),
        )
    };
    let list = list(id).to_string();
    match how {
        "plain" => typed(200, "application/json", list),
        "status" => typed(500, "application/json", list),
        "missing" => typed(404, "application/json", list),
        "accepted" => typed(202, "application/json", list),
        "batch" => typed(200, "application/json", format!("[{list}]")),
        "failed batch" => typed(400, "application/json", format!("[{list}]")),
        "twice" => typed(500, "application/json", list.replacen('{', r#"{"result":{},"#, 1)),
        "text" => typed(200, "text/plain", list),
        "html" => typed(200, "text/html", format!("<p>{list}")),
        "gzip" => {
            let mut response = typed(200, "application/json", list);
            response.headers_mut().insert("content-encoding", "gzip".parse().unwrap());
            response
        }
        "gzip stream" => {
            let mut response = typed(200, "text/event-stream", format!("garbled: {list}\n\n"));
            response.headers_mut().insert("content-encoding", "gzip".parse().unwrap());
            response
        }
        "stream" => events(&[list.clone(), list.replace("\"id\":7", "\"id\":99"), list]),
        "batch in stream" => events(&[format!("[{list}]")]),
        "lines" => typed(
            200,
            "text/event-stream",
            format!("event: message\r\ndata: {}\r\n\r\n", list.replace("},{", "},\r\ndata: {")),
        ),
        "kind" => typed(200, "text/event-stream", format!("event: other\ndata: {list}\n\n")),
        "cased stream" => typed(200, "Text/Event-Stream ; charset=utf-8", format!("data:{list}\n\n")),
        "cased" => typed(200, "application/json", list.replace("\"tools\"", "\"Tools\"")),
        "unended" => typed(200, "text/event-stream", format!("data: {list}\n")),
        _ => panic!("{how}"),
    }
}

#[tokio::test]
async fn a_list_is_looked_into_wherever_it_comes_and_what_cannot_be_is_not_shown() {
    for (what, expected, has_list) in [
        ("plain", 200, true),
        ("status", 500, true),
        ("missing", 404, true),
        ("accepted", 202, true),
        ("batch", 500, false),
        ("failed batch", 500, false),
        ("twice", 500, false),
        ("text", 200, true),
        ("html", 500, false),
        ("gzip", 500, false),
        ("gzip stream", 500, false),
        ("stream", 200, true),
        ("batch in stream", 200, false),
        ("lines", 200, true),
        ("kind", 200, true),
        ("cased stream", 200, true),
        ("cased", 500, false),
        ("unended", 200, false),
    ] {
        let server = Server::start(move |got| answer(what, &got.json()["id"])).await;
        let fixture = Fixture::new(&server, policies(&[PERMIT])).await;
        let answer = fixture.post(&[("accept-encoding", "gzip, br")], &call("tools/list", json!({}))).await;
        let text = String::from_utf8(answer.body.to_vec()).unwrap();
        assert_eq!(answer.status.as_u16(), expected, "{what}: {text}");
        assert!(!text.contains("SECRET"), "{what}: {text}");
        assert_eq!(text.contains(r#""read""#), has_list, "{what}: {text}");
        assert_eq!(server.got()[0].header("accept-encoding"), Some("identity"), "{what}");
    }
}

#[tokio::test]
async fn errors_and_receipts_in_other_words_come_through() {
    for (status, type_, body) in [
        (500, "text/plain", "out of order"),
        (404, "application/json", r#"{"error":"not found"}"#),
        (400, "application/json", r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32600,"message":"m"}}"#),
        (202, "text/plain", "Accepted"),
        (202, "application/json", "null"),
        (204, "application/json", ""),
    ] {
        let server = Server::start(move |_| typed(status, type_, body)).await;
        let fixture = Fixture::new(&server, policies(&[PERMIT])).await;
        let answer = fixture.post(&[], &call("ping", json!({}))).await;
        assert_eq!((answer.status.as_u16(), &*answer.body), (status, body.as_bytes()), "{status} {type_}");
    }
}

#[tokio::test]
async fn a_stdio_server_shows_a_caller_no_more_than_they_may_use() {
    let fake = Fake::new(|heard| match heard.json.get("id") {
        Some(_) if heard.method() == "ping" => {
            let asks = json!({"jsonrpc": "2.0", "id": "s", "method": "roots/list"});
            let unasked = json!({"jsonrpc": "2.0", "id": 12_345, "result": tools()});
            vec![Act::Say(unasked.to_string()), Act::Say(asks.to_string()), heard.result(tools())]
        }
        Some(_) => vec![heard.result(tools())],
        None => Vec::new(),
    });
    let allowed = [r#"permit(principal, action, resource == Tool::"read");"#];
    let config = json!({"middleware_configs": policies(&allowed)});
    let fixture = fake.configured(config, Duration::from_secs(20)).await;
    let client = Client::new(&fixture).await;
    let mut listens = client.listen().await;
    let seen = json!({"tools": [{"name": "read"}], "prompts": [], "resources": []});
    for method in ["tools/list", "prompts/list", "resources/list", "completion/complete"] {
        assert_eq!(client.call(method, json!({})).await["result"], seen, "{method}");
    }
    let mut stream = client.stream(&call("ping", json!({}))).await;
    assert_eq!(
        stream.next().await.unwrap()["method"],
        "roots/list",
        "what the server asks is its client's to answer"
    );
    assert_eq!(stream.next().await.unwrap()["result"], seen);
    assert_eq!(stream.next().await, None);
    for denied in ["wait", "tools/other", "tasks/result"] {
        assert_eq!(client.post(&call(denied, json!({}))).await.status, StatusCode::FORBIDDEN, "{denied}");
    }
    assert!(!fake.methods().iter().any(|method| method == "wait" || method.contains("other")));
    // Unasked, on the stream of those who listen.
    let changed = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": {"n": 1}});
    fake.say(json!({"jsonrpc": "2.0", "id": 54_321, "result": tools()}));
    fake.say(changed.clone());
    listens.expect(changed).await;
}

#[tokio::test]
async fn what_a_server_says_unasked_on_a_stream_is_looked_into() {
    let server = Server::start(|got| match got.method {
        Method::GET => {
            let events = format!(
                "id: 1\ndata: {}\n\nevent: message\ndata: {}\n\n: note\n\ndata: {}\n\n",
                list(&json!(1)),
                json!({"jsonrpc": "2.0", "id": 9, "method": "roots/list"}),
                json!({"jsonrpc": "2.0", "id": 2, "result": {"x": {"tools": []}}}),
            );
            typed(200, "text/event-stream", events)
        }
        _ => result(got, json!({})),
    })
    .await;
    let fixture = Fixture::new(&server, policies(&[PERMIT])).await;
    let mut events = Events::new(send(&fixture, Method::GET, "/mcp", &[STREAM], "").await);
    let first = events.next().await.unwrap();
    assert_eq!(first["result"], json!({"tools": [{"name": "read"}], "prompts": [], "resources": []}));
    events.expect(json!({"jsonrpc": "2.0", "id": 9, "method": "roots/list"})).await;
    events.expect(json!({"jsonrpc": "2.0", "id": 2, "result": {"x": {"tools": []}}})).await;
    assert_eq!(events.next().await, None);
}

#[tokio::test]
async fn a_redirect_takes_nothing_to_another_host() {
    let elsewhere = Server::start(|got| result(got, json!({}))).await;
    let other = elsewhere.address;
    for location in [
        format!("http://{other}/mcp"),
        format!("//{other}/mcp"),
        format!("http://user@{other}/mcp"),
        "https://127.0.0.1/mcp".into(),
        "file:///etc/passwd".into(),
    ] {
        let place = location.clone();
        let server = Server::start(move |_| {
            Response::builder().status(307).header("location", &place).body(Bytes::new()).unwrap()
        })
        .await;
        let fixture = Fixture::new(&server, json!([])).await;
        let answer = fixture.post(&[("authorization", "Bearer secret")], &call("ping", json!({}))).await;
        assert_eq!(answer.status, StatusCode::TEMPORARY_REDIRECT, "{location}");
        assert!(server.got().iter().all(|got| got.header("authorization") == Some("Bearer secret")));
    }
    assert!(elsewhere.got().is_empty());
}
