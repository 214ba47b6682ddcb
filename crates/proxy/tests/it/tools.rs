//! Which tools are offered, and under what names.

use bytes::Bytes;
use http::{Response, StatusCode};
use serde_json::{Value, json};

use crate::fixture::{Fixture, Got, Server, call, result};

fn listed(got: &Got) -> Response<Bytes> {
    let tool =
        |name: &str| json!({"name": name, "description": "d", "inputSchema": {"type": "object"}, "x": [1]});
    result(
        got,
        json!({"tools": [tool("read"), tool("write"), tool("exec")], "nextCursor": "c", "_meta": {"y": 1}}),
    )
}

fn middleware() -> Value {
    let filter = json!({
        "filter_tools": ["read", "put"],
        "tools_override": {"write": {"name": "put"}, "read": {"description": "reads"}},
    });
    json!([{"type": "tool-filter", "parameters": filter}, {"type": "tool-call-filter", "parameters": filter}])
}

#[tokio::test]
async fn a_list_has_what_is_offered_and_keeps_everything_else() {
    let server = Server::start(listed).await;
    let fixture = Fixture::new(&server, middleware()).await;
    let answer = fixture.post(&[], &call("tools/list", json!({}))).await.json();
    let tool = |name: &str, description: &str| json!({"name": name, "description": description, "inputSchema": {"type": "object"}, "x": [1]});
    let expected =
        json!({"tools": [tool("read", "reads"), tool("put", "d")], "nextCursor": "c", "_meta": {"y": 1}});
    assert_eq!(answer["result"], expected);
}

#[tokio::test]
async fn a_list_in_a_stream_is_filtered_too() {
    let server = Server::start(|got| {
        let message = String::from_utf8(listed(got).into_body().to_vec()).unwrap();
        let events = format!(": alive\n\nevent: message\ndata: {message}\n\n");
        Response::builder().header("content-type", "text/event-stream").body(events.into()).unwrap()
    })
    .await;
    let fixture = Fixture::new(&server, middleware()).await;
    let answer = fixture.post(&[("accept", "text/event-stream")], &call("tools/list", json!({}))).await;
    let text = String::from_utf8(answer.body.to_vec()).unwrap();
    assert!(text.starts_with(": alive\n\nevent: message\ndata: {"), "{text}");
    assert!(text.contains(r#""name":"put""#) && !text.contains("exec") && text.ends_with("\n\n"), "{text}");
}

#[tokio::test]
async fn calls_go_to_the_name_that_the_server_knows_and_hidden_tools_do_not_exist() {
    let server = Server::start(|got| result(got, json!({"called": got.json()["params"]["name"]}))).await;
    let fixture = Fixture::new(&server, middleware()).await;
    let called = async |name: &str| fixture.post(&[], &call("tools/call", json!({"name": name}))).await;
    assert_eq!(called("put").await.json()["result"]["called"], "write");
    assert_eq!(called("read").await.json()["result"]["called"], "read");
    for hidden in ["exec", "write", "none"] {
        let answer = called(hidden).await;
        assert_eq!(
            (answer.status, answer.json()["error"]["code"].clone()),
            (StatusCode::OK, json!(-32602)),
            "{hidden}"
        );
    }
    assert_eq!(server.got().len(), 2);
}
