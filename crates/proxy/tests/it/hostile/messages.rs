//! Bodies that are not messages, or that are ambiguous. No server receives them.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::{
    fixture::{Fixture, Server, call, result},
    stdio::{client::Client, fake::Fake},
};

/// The bodies, and the code of each error. The status is always 400.
fn invalid_bodies() -> Vec<(&'static str, Vec<u8>, i64)> {
    let deep = |open: &str, close: &str, levels: usize| {
        let (open, close) = (open.repeat(levels), close.repeat(levels));
        format!(
            r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"a","arguments":{{"a":{open}0{close}}}}}}}"#
        )
    };
    let text = |text: &str| text.as_bytes().to_vec();
    vec![
        ("a method twice", text(r#"{"jsonrpc":"2.0","id":7,"method":"ping","method":"tools/call"}"#), -32600),
        (
            "a method twice, escaped",
            text(r#"{"jsonrpc":"2.0","id":7,"method":"ping","\u006dethod":"tools/call"}"#),
            -32600,
        ),
        (
            "a method twice, in another case",
            text(r#"{"jsonrpc":"2.0","id":7,"method":"ping","Method":"tools/call"}"#),
            -32600,
        ),
        ("a method in another case only", text(r#"{"jsonrpc":"2.0","id":7,"METHOD":"ping"}"#), -32600),
        (
            "a name twice",
            text(r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"a","name":"b"}}"#),
            -32602,
        ),
        (
            "a name twice, by the long s",
            text(r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"a"},"param\u017f":{}}"#),
            -32602,
        ),
        ("an id twice", text(r#"{"jsonrpc":"2.0","id":7,"id":8,"method":"ping"}"#), -32600),
        ("no id but null", text(r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#), -32600),
        ("an id with a point", text(r#"{"jsonrpc":"2.0","id":7.0,"method":"ping"}"#), -32600),
        ("an id with an exponent", text(r#"{"jsonrpc":"2.0","id":1e400,"method":"ping"}"#), -32600),
        ("an id that is an object", text(r#"{"jsonrpc":"2.0","id":{"a":1},"method":"ping"}"#), -32600),
        ("a batch", text(r#"[{"jsonrpc":"2.0","id":7,"method":"ping"}]"#), -32600),
        ("an empty batch", text("[]"), -32600),
        (
            "two messages",
            text(r#"{"jsonrpc":"2.0","id":7,"method":"ping"}{"jsonrpc":"2.0","id":8,"method":"ping"}"#),
            -32700,
        ),
        (
            "two lines",
            text(
                "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\"}\n{\"jsonrpc\":\"2.0\",\"id\":8,\"method\":\"ping\"}",
            ),
            -32700,
        ),
        ("a line end in a text", text("{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"pi\nng\"}"), -32700),
        ("a NUL in a text", text("{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\0\"}"), -32700),
        ("a NUL after the end", text("{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\"}\0"), -32700),
        (
            "a byte that is no UTF-8",
            b"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"p\xffing\"}".to_vec(),
            -32700,
        ),
        (
            "UTF-8 that is too long",
            b"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"p\xc0\xafing\"}".to_vec(),
            -32700,
        ),
        ("a byte order mark", "\u{feff}{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\"}".into(), -32700),
        ("UTF-16", "{\"jsonrpc\":\"2.0\"}".encode_utf16().flat_map(u16::to_le_bytes).collect(), -32700),
        (
            "half a surrogate pair",
            text(r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"a\ud800"}}"#),
            -32600,
        ),
        ("a comment", text(r#"{"jsonrpc":"2.0","id":7,"method":"ping"/**/}"#), -32700),
        ("nested too deep", deep("[", "]", 100).into(), -32700),
        ("nested a hundred thousand deep", deep(r#"{"a":"#, "}", 100_000).into(), -32700),
        ("a response without an id", text(r#"{"jsonrpc":"2.0","result":{}}"#), -32600),
        (
            "a response and a request in one",
            text(r#"{"jsonrpc":"2.0","id":7,"method":"ping","result":{}}"#),
            -32600,
        ),
        ("a text", text("\"ping\""), -32700),
        ("nothing but space", text(" \n "), -32700),
    ]
}

#[tokio::test]
async fn a_body_that_is_not_one_unambiguous_message_is_rejected() {
    let server = Server::start(|request| result(request, json!({}))).await;
    let fake = Fake::echo();
    for fixture in [Fixture::new(&server, json!([])).await, fake.proxy().await] {
        for (what, body, code) in invalid_bodies() {
            let json = [("content-type", "application/json")];
            let answer = fixture.send(Method::POST, "/mcp", &json, &body).await;
            assert_eq!(
                (answer.status, answer.json()["error"]["code"].clone()),
                (StatusCode::BAD_REQUEST, json!(code)),
                "{what}: {}",
                answer.json()
            );
        }
    }
    assert!(server.requests().is_empty());
    assert_eq!(fake.methods(), Vec::<String>::new());
}

#[tokio::test]
async fn a_message_in_another_encoding_is_rejected() {
    let server = Server::start(|request| result(request, json!({}))).await;
    let fake = Fake::echo();
    let ping = call("ping", json!({}));
    for fixture in [Fixture::new(&server, json!([])).await, fake.proxy().await] {
        for headers in [
            &[("content-type", "application/json; charset=utf-7")][..],
            &[("content-type", "application/json; charset=\"UTF-16\"")],
            &[("content-type", "application/x-www-form-urlencoded")],
            &[("content-type", "text/plain")],
            &[("content-type", "application/json"), ("content-type", "text/plain")],
            &[("content-type", "application/json"), ("content-encoding", "gzip")],
            &[("content-type", "application/json"), ("content-encoding", "identity, br")],
        ] {
            let answer = fixture.send(Method::POST, "/mcp", headers, ping.as_bytes()).await;
            assert_eq!(answer.status, StatusCode::UNSUPPORTED_MEDIA_TYPE, "{headers:?}");
        }
    }
    assert!(server.requests().is_empty() && fake.received().is_empty());
}

#[tokio::test]
async fn ids_of_responses_are_spelled_as_in_the_request() {
    let server = Server::start(|request| {
        let body = String::from_utf8(request.body.to_vec()).unwrap();
        let (_, rest) = body.split_once("\"id\":").unwrap();
        let id = rest.split_once(",\"method\"").unwrap().0;
        let mut answer = result(request, json!({}));
        *answer.body_mut() = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#).into();
        answer
    })
    .await;
    let fake = Fake::echo();
    for fixture in [Fixture::new(&server, json!([])).await, fake.proxy().await] {
        for id in
            ["18446744073709551616", "-99999999999999999999999999", "-0", r#""""#, r#""\u0000""#, r#""\"}{""#]
        {
            let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping","params":{{}}}}"#);
            let answer = fixture.post(&[], &body).await;
            let text = String::from_utf8(answer.body.to_vec()).unwrap();
            assert_eq!(answer.status, StatusCode::OK, "{id}");
            assert!(text.contains(&format!(r#""id":{id},"#)), "{id}: {text}");
        }
    }
}

#[tokio::test]
async fn an_unsolicited_response_does_not_reach_a_stdio_server() {
    let fake = Fake::echo();
    let fixture = fake.proxy().await;
    let client = Client::new(&fixture).await;
    let before = fake.received().len();
    for message in [
        json!({"jsonrpc": "2.0", "id": 1, "result": {"role": "assistant"}}),
        json!({"jsonrpc": "2.0", "id": "1", "error": {"code": 1, "message": "m"}}),
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}),
        json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": 1, "progress": 1}}),
    ] {
        assert_eq!(client.post(&message.to_string()).await.status, StatusCode::ACCEPTED, "{message}");
    }
    assert_eq!(client.call("ping", json!({})).await["id"], 7);
    let after: Vec<Value> =
        fake.received()[before..].iter().map(|received| received.json["method"].clone()).collect();
    assert_eq!(after, [json!("ping")]);
}
