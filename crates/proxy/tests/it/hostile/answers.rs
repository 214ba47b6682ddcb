//! Servers that answer what nobody asked for, or in a way that nobody looks into. What a caller may not use is not shown.

use std::time::Duration;

use bytes::Bytes;
use http::{Method, Response, StatusCode};
use serde_json::{Value, json};

use super::judged::policies;
use crate::{
    fixture::{Fixture, Got, Server, answered, call, result},
    stdio::{
        client::{Client, Events, STREAM, send},
        fake::Fake,
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

/// What the server answers to each call, by the tool that is called.
fn answer(got: &Got) -> Response<Bytes> {
    let id = &got.json()["id"];
    let events = |messages: &[String]| -> Response<Bytes> {
        typed(
            200,
            "text/event-stream",
            messages.iter().map(|data| format!("data: {data}\n\n")).collect::<String>(),
        )
    };
    let list = list(id).to_string();
    match got.json()["method"].as_str().unwrap_or_default() {
        "ping" => answered(got.json()).map(|_| list.into()),
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
        _ => result(got, json!({})),
    }
}

#[tokio::test]
async fn a_list_is_looked_into_wherever_it_comes_and_what_cannot_be_is_not_shown() {
    let server = Server::start(answer).await;
    let allowed = r#"permit(principal, action, resource == Tool::"read");"#;
    let fixture = Fixture::new(&server, policies(&[allowed])).await;
    let shown = json!([{"name": "read"}]);
    // Only these are asked for; the server answers as it is told by their `cursor`.
    for (what, expected, has_list) in [
        ("ping", 200, true),
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
        let server = Server::start(move |got| {
            let mut asked = got.clone();
            asked.body = json!({"id": got.json()["id"], "method": what}).to_string().into();
            answer(&asked)
        })
        .await;
        let fixture = Fixture::new(&server, policies(&[PERMIT])).await;
        let answer = fixture.post(&[("accept-encoding", "gzip, br")], &call("tools/list", json!({}))).await;
        let text = String::from_utf8(answer.body.to_vec()).unwrap();
        assert_eq!(answer.status.as_u16(), expected, "{what}: {text}");
        assert!(!text.contains("SECRET"), "{what}: {text}");
        assert_eq!(text.contains(r#""read""#), has_list, "{what}: {text}");
        assert_eq!(server.got()[0].header("accept-encoding"), Some("identity"), "{what}");
    }
    let answer = fixture.post(&[], &call("ping", json!({}))).await.json();
    assert_eq!((&answer["result"]["tools"], &answer["result"]["prompts"]), (&shown, &json!([])));
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
        Some(id) if heard.method() == "wait" => {
            let asks =
                json!({"jsonrpc": "2.0", "id": "s", "method": "sampling/createMessage", "params": tools()});
            let unasked = json!({"jsonrpc": "2.0", "id": 12_345, "result": tools()});
            [asks, unasked, list(id)].map(|message| crate::stdio::fake::Act::Say(message.to_string())).into()
        }
        Some(_) => vec![heard.result(tools())],
        None => Vec::new(),
    });
    let allowed = [r#"permit(principal, action, resource == Tool::"read");"#];
    let config = json!({"middleware_configs": policies(&allowed)});
    let fixture = fake.configured(config, Duration::from_secs(20)).await;
    let client = Client::new(&fixture).await;
    let mut listens = client.listen().await;
    for method in ["ping", "tools/list", "prompts/list", "resources/list"] {
        let answer = client.call(method, json!({})).await;
        let expected = json!({"tools": [{"name": "read"}], "prompts": [], "resources": []});
        assert_eq!(answer["result"], expected, "{method}");
    }
    for denied in ["wait", "tools/other", "tasks/result"] {
        assert_eq!(client.post(&call(denied, json!({}))).await.status, StatusCode::FORBIDDEN, "{denied}");
    }
    assert!(!fake.methods().contains(&"wait".to_owned()));
    // Unasked, on the stream of those who listen.
    let changed = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": {"n": 1}});
    fake.say(json!({"jsonrpc": "2.0", "id": 54_321, "result": tools()}));
    fake.say(changed.clone());
    listens.expect(changed).await;
}

#[tokio::test]
async fn a_server_that_listens_to_nobody_shows_nothing_on_the_stream_of_a_session() {
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
