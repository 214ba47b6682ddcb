//! Unsolicited and malformed responses of servers. Items that a caller may not use are never shown.

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
async fn a_list_is_filtered_in_every_response_and_a_malformed_one_is_not_forwarded() {
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
        let server = Server::start(move |request| answer(what, &request.json()["id"])).await;
        let fixture = Fixture::new(&server, policies(&[PERMIT])).await;
        let answer = fixture.post(&[("accept-encoding", "gzip, br")], &call("tools/list", json!({}))).await;
        let text = String::from_utf8(answer.body.to_vec()).unwrap();
        assert_eq!(answer.status.as_u16(), expected, "{what}: {text}");
        assert!(!text.contains("SECRET"), "{what}: {text}");
        assert_eq!(text.contains(r#""read""#), has_list, "{what}: {text}");
        assert_eq!(server.requests()[0].header("accept-encoding"), Some("identity"), "{what}");
    }
}

#[tokio::test]
async fn http_errors_and_202_bodies_are_forwarded() {
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
async fn lists_of_a_stdio_server_contain_only_permitted_items() {
    let fake = Fake::new(|received| match received.json.get("id") {
        Some(_) if received.method() == "ping" => {
            let request = json!({"jsonrpc": "2.0", "id": "s", "method": "roots/list"});
            let unsolicited = json!({"jsonrpc": "2.0", "id": 12_345, "result": tools()});
            vec![Act::Send(unsolicited.to_string()), Act::Send(request.to_string()), received.result(tools())]
        }
        Some(_) => vec![received.result(tools())],
        None => Vec::new(),
    });
    let allowed = [r#"permit(principal, action, resource == Tool::"read");"#];
    let config = json!({"middleware_configs": policies(&allowed)});
    let fixture = fake.configured(config, Duration::from_secs(20)).await;
    let client = Client::new(&fixture).await;
    let mut session_stream = client.listen().await;
    let seen = json!({"tools": [{"name": "read"}], "prompts": [], "resources": []});
    for method in ["tools/list", "prompts/list", "resources/list"] {
        assert_eq!(client.call(method, json!({})).await["result"], seen, "{method}");
    }
    let mut stream = client.stream(&call("ping", json!({}))).await;
    assert_eq!(
        stream.next().await.unwrap()["method"],
        "roots/list",
        "a request of the server is for its client"
    );
    assert_eq!(stream.next().await.unwrap()["result"], seen);
    assert_eq!(stream.next().await, None);
    for denied in ["wait", "tools/other", "tasks/result"] {
        assert_eq!(client.post(&call(denied, json!({}))).await.status, StatusCode::FORBIDDEN, "{denied}");
    }
    assert!(!fake.methods().iter().any(|method| method == "wait" || method.contains("other")));
    // Unsolicited, on the streams of sessions.
    let changed = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": {"n": 1}});
    fake.send(json!({"jsonrpc": "2.0", "id": 54_321, "result": tools()}));
    fake.send(changed.clone());
    session_stream.expect(changed).await;
}

#[tokio::test]
async fn unsolicited_lists_on_a_stream_are_filtered() {
    let server = Server::start(|request| match request.method {
        Method::GET => {
            let events = format!(
                "id: 1\ndata: {}\n\nevent: message\ndata: {}\n\n: note\n\ndata: {}\n\n",
                list(&json!(1)),
                json!({"jsonrpc": "2.0", "id": 9, "method": "roots/list"}),
                json!({"jsonrpc": "2.0", "id": 2, "result": {"x": {"tools": []}}}),
            );
            typed(200, "text/event-stream", events)
        }
        _ => result(request, json!({})),
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
async fn a_redirect_to_another_host_is_not_followed() {
    let elsewhere = Server::start(|request| result(request, json!({}))).await;
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
        assert!(
            server.requests().iter().all(|request| request.header("authorization") == Some("Bearer secret"))
        );
    }
    assert!(elsewhere.requests().is_empty());
}
