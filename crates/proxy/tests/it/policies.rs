//! Authorization by policies.

use bytes::Bytes;
use futures::future::join_all;
use http::{Response, StatusCode};
use serde_json::{Value, json};

use crate::fixture::{Fixture, ReceivedRequest, Server, call, initialize_response, result, status};

fn middleware(policies: &[&str]) -> Value {
    let document =
        json!({"version": "1.0", "type": "cedarv1", "cedar": {"policies": policies, "entities_json": "[]"}});
    json!([
        {"type": "auth", "parameters": {}},
        {"type": "mcp-parser", "parameters": {}},
        {"type": "authorization", "parameters": {"config_data": document}},
        {"type": "recovery", "parameters": null},
    ])
}

#[tokio::test]
async fn a_request_that_no_policy_permits_is_denied_and_not_forwarded() {
    let server = Server::start(|request| result(request, json!({}))).await;
    let permit = r#"permit(principal, action == Action::"call_tool", resource == Tool::"read");"#;
    let fixture = Fixture::new(&server, middleware(&[permit])).await;
    for (body, expected) in [
        (call("tools/call", json!({"name": "read"})), StatusCode::OK),
        (call("tools/call", json!({"name": "write"})), StatusCode::FORBIDDEN),
        (call("tools/call", json!({})), StatusCode::FORBIDDEN),
        (call("prompts/get", json!({"name": "read"})), StatusCode::FORBIDDEN),
        (call("resources/read", json!({"uri": "file:///read"})), StatusCode::FORBIDDEN),
        (call("something/new", json!({})), StatusCode::FORBIDDEN),
        (call("ping", json!({})), StatusCode::OK),
        (call("initialize", json!({})), StatusCode::OK),
        (
            r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"write"}}"#.into(),
            StatusCode::FORBIDDEN,
        ),
    ] {
        let answer = fixture.post(&[], &body).await;
        assert_eq!(answer.status, expected, "{body}");
    }
    assert_eq!(server.requests().len(), 3);
}

/// The attack: a caller that may not read a resource hears of its changes, and so of its existence.
#[tokio::test]
async fn a_stream_is_opened_only_for_resources_that_the_caller_may_read() {
    let server = Server::start(|request| result(request, json!({}))).await;
    let permit =
        r#"permit(principal, action == Action::"read_resource", resource == Resource::"file:///a");"#;
    let fixture = Fixture::new(&server, middleware(&[permit])).await;
    let listen = |notifications: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{{"notifications":{notifications}}}}}"#
        )
    };
    for allowed in [
        r#"{}"#,
        r#"{"toolsListChanged":true,"resourceSubscriptions":null}"#,
        r#"{"resourceSubscriptions":[]}"#,
        r#"{"resourceSubscriptions":["file:///a"]}"#,
    ] {
        assert_eq!(fixture.post(&[], &listen(allowed)).await.status, StatusCode::OK, "{allowed}");
    }
    let sent = server.requests().len();
    let many = json!({"resourceSubscriptions": vec!["file:///a"; 1_001]}).to_string();
    for (denied, expected) in [
        (r#"{"resourceSubscriptions":["file:///b"]}"#, StatusCode::FORBIDDEN),
        (r#"{"resourceSubscriptions":["file:///a","file:///b"]}"#, StatusCode::FORBIDDEN),
        (r#"{"resource\u0053ubscriptions":["file:///b"]}"#, StatusCode::FORBIDDEN),
        (&many, StatusCode::FORBIDDEN),
        // Servers differ in which of these they read.
        (
            r#"{"resourceSubscriptions":["file:///a"],"resourceSubscriptions":["file:///b"]}"#,
            StatusCode::BAD_REQUEST,
        ),
        (r#"{"ResourceSubscriptions":["file:///b"]}"#, StatusCode::BAD_REQUEST),
        (r#"{},"notifications":{"resourceSubscriptions":["file:///b"]}"#, StatusCode::BAD_REQUEST),
        (r#"{"resourceSubscriptions":"file:///b"}"#, StatusCode::BAD_REQUEST),
        (r#"{"resourceSubscriptions":[{"uri":"file:///b"}]}"#, StatusCode::BAD_REQUEST),
        (r#"["file:///b"]"#, StatusCode::BAD_REQUEST),
    ] {
        assert_eq!(fixture.post(&[], &listen(denied)).await.status, expected, "{denied}");
    }
    assert_eq!(server.requests().len(), sent, "the server sees none of them");
}

#[tokio::test]
async fn lists_contain_only_permitted_items_also_if_they_were_not_requested() {
    let tools = json!({"tools": [{"name": "read"}, {"name": "write"}], "prompts": [{"name": "p"}], "nextCursor": "c"});
    let answer = tools.clone();
    let server = Server::start(move |request| result(request, answer.clone())).await;
    let permit = r#"permit(principal, action, resource == Tool::"read");"#;
    let fixture = Fixture::new(&server, middleware(&[permit])).await;
    for method in ["tools/list", "ping"] {
        let answer = fixture.post(&[], &call(method, json!({}))).await.json();
        let expected = json!({"tools": [{"name": "read"}], "prompts": [], "nextCursor": "c"});
        assert_eq!(answer["result"], expected, "{method}");
    }
}

#[tokio::test]
async fn a_malformed_response_is_not_forwarded() {
    let server = Server::start(|request| {
        let mut odd = result(request, json!({}));
        *odd.body_mut() = r#"{"jsonrpc":"2.0","id":7,"result":{"tools":[{"name":"a"}],"tools":[]}}"#.into();
        odd
    })
    .await;
    let fixture = Fixture::new(&server, middleware(&["permit(principal, action, resource);"])).await;
    let answer = fixture.post(&[], &call("tools/list", json!({}))).await;
    assert_eq!(
        (answer.status, answer.json()["error"]["code"].clone()),
        (StatusCode::INTERNAL_SERVER_ERROR, json!(-32603))
    );
}

#[tokio::test]
async fn policies_can_depend_on_arguments() {
    let server = Server::start(|request| result(request, json!({}))).await;
    let permit = r#"permit(principal, action, resource) when { context has arg_path && context.arg_path like "/data/*" };"#;
    let fixture = Fixture::new(&server, middleware(&[permit])).await;
    let read = |path: &str| call("tools/call", json!({"name": "read", "arguments": {"path": path}}));
    assert_eq!(fixture.post(&[], &read("/data/a")).await.status, StatusCode::OK);
    assert_eq!(fixture.post(&[], &read("/etc/passwd")).await.status, StatusCode::FORBIDDEN);
}

/// The attack: completions tell values of arguments, and names, of what the caller may not use.
#[tokio::test]
async fn a_completion_needs_permission_for_what_it_refers_to() {
    let server = Server::start(|request| result(request, json!({"completion": {"values": ["v"]}}))).await;
    let permit = [
        r#"permit(principal, action == Action::"get_prompt", resource == Prompt::"p");"#,
        r#"permit(principal, action == Action::"read_resource", resource) when { resource.uri like "file:///a/*" };"#,
    ];
    let fixture = Fixture::new(&server, middleware(&permit)).await;
    let complete = |reference: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"completion/complete","params":{{{reference}"argument":{{"name":"x","value":""}}}}}}"#
        )
    };
    for allowed in [
        r#""ref":{"type":"ref/prompt","name":"p"},"#,
        r#""ref":{"type":"ref/resource","uri":"file:///a/{x}"},"#,
        r#""ref":{"type":"ref/prompt","name":"p","uri":null},"#,
    ] {
        assert_eq!(fixture.post(&[], &complete(allowed)).await.status, StatusCode::OK, "{allowed}");
    }
    let sent = server.requests().len();
    for (denied, expected) in [
        (r#""ref":{"type":"ref/prompt","name":"denied"},"#, StatusCode::FORBIDDEN),
        (r#""ref":{"type":"ref/resource","uri":"file:///denied/{x}"},"#, StatusCode::FORBIDDEN),
        (r#""ref":{"type":"ref/resource","name":"p","uri":"file:///denied/{x}"},"#, StatusCode::FORBIDDEN),
        (r#""ref":{"type":"ref/prompt","name":"denied","uri":"file:///a/{x}"},"#, StatusCode::FORBIDDEN),
        (r#""ref":{"type":"ref/prompt"},"#, StatusCode::FORBIDDEN),
        (r#""ref":"p","#, StatusCode::FORBIDDEN),
        (r#""ref":null,"#, StatusCode::FORBIDDEN),
        ("", StatusCode::FORBIDDEN),
        // Servers differ in which of these they read.
        (r#""ref":{"type":"ref/prompt","name":"p","name":"denied"},"#, StatusCode::BAD_REQUEST),
        (r#""ref":{"type":"ref/prompt","name":"p","n\u0061me":"denied"},"#, StatusCode::BAD_REQUEST),
        (r#""ref":{"type":"ref/prompt","Name":"denied"},"#, StatusCode::BAD_REQUEST),
        (r#""ref":{"type":"ref/prompt","name":["denied"]},"#, StatusCode::BAD_REQUEST),
        (r#""ref":{"name":"p"},"ref":{"name":"denied"},"#, StatusCode::BAD_REQUEST),
        (r#""Ref":{"name":"denied"},"ref":{"name":"p"},"#, StatusCode::BAD_REQUEST),
    ] {
        assert_eq!(fixture.post(&[], &complete(denied)).await.status, expected, "{denied}");
    }
    assert_eq!(server.requests().len(), sent, "the server sees none of them");
}

/// Policies that read a hint.
fn forbids_destructive_tools() -> Value {
    middleware(&[
        r#"permit(principal, action == Action::"call_tool", resource);"#,
        "forbid(principal, action, resource) when { resource has destructiveHint && resource.destructiveHint };",
    ])
}

/// A server that lists two tools, on two pages, to those who have its key.
fn lists_two_tools(request: &ReceivedRequest) -> Response<Bytes> {
    if request.header("x-key") != Some("k") {
        return status(401);
    }
    let json = request.json();
    match json["method"].as_str() {
        Some("initialize") => {
            let mut response = initialize_response(request, "s");
            let capabilities = json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}});
            *response.body_mut() = result(request, capabilities).into_body();
            response
        }
        Some("tools/list") if json["params"]["cursor"] == "2" => {
            let drop = json!({"name": "drop", "annotations": {"destructiveHint": true}});
            result(request, json!({"tools": [drop]}))
        }
        Some("tools/list") => result(request, json!({"tools": [{"name": "read"}], "nextCursor": "2"})),
        _ => result(request, json!({})),
    }
}

fn methods(server: &Server) -> Vec<String> {
    let method = |request: ReceivedRequest| request.json()["method"].as_str().unwrap_or_default().to_owned();
    server.requests().into_iter().map(method).collect()
}

/// The attack: a caller does not list tools before it calls one.
#[tokio::test]
async fn a_policy_knows_the_hints_of_a_tool_that_was_not_listed() {
    let server = Server::start(lists_two_tools).await;
    let fixture = Fixture::new(&server, forbids_destructive_tools()).await;
    let statuses = join_all((0..8).map(|number| {
        let tool = call("tools/call", json!({"name": if number % 2 == 0 { "drop" } else { "read" }}));
        let fixture = &fixture;
        async move { fixture.post(&[("x-key", "k")], &tool).await.status.as_u16() }
    }));
    assert_eq!(statuses.await, [403, 200, 403, 200, 403, 200, 403, 200]);
    let methods = methods(&server);
    let count = |method: &str| methods.iter().filter(|other| *other == method).count();
    assert_eq!((count("initialize"), count("tools/list"), count("tools/call")), (1, 2, 4), "{methods:?}");
    let calls = server.requests().into_iter().filter(|request| request.json()["method"] == "tools/call");
    assert!(calls.into_iter().all(|request| request.json()["params"]["name"] == "read"));
}

#[tokio::test]
async fn a_tool_whose_hints_stay_unknown_is_denied() {
    let server = Server::start(lists_two_tools).await;
    let fixture = Fixture::new(&server, forbids_destructive_tools()).await;
    for (key, tool) in [("wrong", "read"), ("wrong", "drop"), ("k", "unlisted")] {
        let answer = fixture.post(&[("x-key", key)], &call("tools/call", json!({"name": tool}))).await;
        assert_eq!(
            (answer.status, &answer.json()["error"]["code"]),
            (StatusCode::FORBIDDEN, &json!(403)),
            "{tool}"
        );
    }
    assert!(!methods(&server).contains(&"tools/call".to_owned()));
    let stopped = Server::stopped();
    let fixture = Fixture::new(&stopped, forbids_destructive_tools()).await;
    let answer = fixture.post(&[], &call("tools/call", json!({"name": "read"}))).await;
    assert_eq!(answer.status, StatusCode::BAD_GATEWAY);
}

#[tokio::test]
async fn a_list_that_a_caller_requested_saves_another_request() {
    let server = Server::start(lists_two_tools).await;
    let fixture = Fixture::new(&server, forbids_destructive_tools()).await;
    fixture.post(&[("x-key", "k")], &call("tools/list", json!({}))).await;
    let read = call("tools/call", json!({"name": "read"}));
    assert_eq!(fixture.post(&[("x-key", "k")], &read).await.status, StatusCode::OK);
    assert_eq!(methods(&server), ["tools/list", "tools/call"]);
}

#[tokio::test]
async fn policies_that_read_no_hint_cause_no_list() {
    let server = Server::start(lists_two_tools).await;
    let permit = r#"permit(principal, action, resource) when { resource.name == "readOnlyHint" };"#;
    let fixture = Fixture::new(&server, middleware(&[permit])).await;
    let answer = fixture.post(&[("x-key", "k")], &call("tools/call", json!({"name": "readOnlyHint"}))).await;
    assert_eq!(answer.status, StatusCode::OK);
    assert_eq!(methods(&server), ["tools/call"]);
}

#[tokio::test]
async fn a_page_of_another_origin_cannot_call() {
    let server = Server::start(|_| status(200)).await;
    let origins = json!([{"type": "origin", "parameters": {"allowed_origins": ["https://app.example"]}}]);
    let fixture = Fixture::new(&server, origins).await;
    let ping = call("ping", json!({}));
    assert_eq!(fixture.post(&[("origin", "https://APP.example")], &ping).await.status, StatusCode::OK);
    assert_eq!(fixture.post(&[], &ping).await.status, StatusCode::OK);
    for foreign in
        ["https://evil.example", "null", "https://app.example.evil.example", "https://app.example:444"]
    {
        let answer = fixture.post(&[("origin", foreign)], &ping).await;
        assert_eq!(answer.status, StatusCode::FORBIDDEN, "{foreign}");
        assert_eq!(answer.json().get("id"), None, "{foreign}");
    }
}
