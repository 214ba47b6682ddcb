//! Filters and overrides of tools.

use bytes::Bytes;
use http::{Response, StatusCode};
use serde_json::{Value, json};

use crate::fixture::{Fixture, ReceivedRequest, Server, call, result};

fn tool_list(request: &ReceivedRequest) -> Response<Bytes> {
    let tool =
        |name: &str| json!({"name": name, "description": "d", "inputSchema": {"type": "object"}, "x": [1]});
    result(
        request,
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
async fn a_list_contains_the_offered_tools_and_everything_else_is_unchanged() {
    let server = Server::start(tool_list).await;
    let fixture = Fixture::new(&server, middleware()).await;
    let answer = fixture.post(&[], &call("tools/list", json!({}))).await.json();
    let tool = |name: &str, description: &str| json!({"name": name, "description": description, "inputSchema": {"type": "object"}, "x": [1]});
    let expected =
        json!({"tools": [tool("read", "reads"), tool("put", "d")], "nextCursor": "c", "_meta": {"y": 1}});
    assert_eq!(answer["result"], expected);
}

#[tokio::test]
async fn a_list_in_a_stream_is_filtered_too() {
    let server = Server::start(|request| {
        let message = String::from_utf8(tool_list(request).into_body().to_vec()).unwrap();
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
async fn a_call_has_the_server_s_name_of_the_tool_and_hidden_tools_do_not_exist() {
    let server =
        Server::start(|request| result(request, json!({"called": request.json()["params"]["name"]}))).await;
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
    assert_eq!(server.requests().len(), 2);
}
